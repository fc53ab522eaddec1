#include "options.h"

namespace ceems::lb {

void add_flags(config::FlagSet& flags, CommandLine& line) {
  flags.add("config.file", line.config_file,
            {.help = "Path of the configuration file.", .env = "CEEMS_LB_CONFIG_FILE"});
  flags.add(
      "config.file.expand-env-vars", line.expand_env,
      {.help = "Replace $NAME and ${NAME} in the configuration file with environment variables."});
  flags.add(
      "web.listen-address", line.listen_addresses,
      {.help = "Address to listen on, one for each kind of backend, in the order in which the "
               "kinds first appear in the configuration (repeatable): host:port, "
               "vsock://:port, unix:/path. The default for the second kind is :9040."});
  flags.add(
      "web.config.file", line.web_config_file,
      {.help = "Path of a web configuration file with TLS and users (exporter-toolkit format).",
       .env = "CEEMS_LB_WEB_CONFIG_FILE"});
  flags.add("web.systemd-socket", line.systemd_socket,
            {.help = "Use the sockets passed by systemd instead of --web.listen-address. Possible "
                     "only with one kind of backend."});
  net::add_flags(flags, line.daemon, "Number of threads that check requests.",
                 "Lowest level of the messages that are logged. Requests that pass are logged at "
                 "debug, refused ones at info.");
  flags.add("security.disable-cap-awareness", line.disable_cap_awareness,
            {.help = "Accepted for compatibility.", .hidden = true});
}

ServiceOptions service_options(const CommandLine& line) {
  return {.listen_addresses = line.listen_addresses,
          .web_config_file = line.web_config_file,
          .systemd_socket = line.systemd_socket,
          .threads = line.daemon.threads};
}

}  // namespace ceems::lb
