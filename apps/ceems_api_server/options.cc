#include "options.h"

#include <algorithm>
#include <utility>

#include "api/check/job_request.h"
#include "config/duration.h"

namespace ceems::api {

void add_flags(config::FlagSet& flags, CommandLine& line) {
  flags.add("config.file", line.config_file,
            {.help = "Path of the configuration file.", .env = "CEEMS_API_SERVER_CONFIG_FILE"});
  flags.add(
      "config.file.expand-env-vars", line.expand_env,
      {.help = "Replace $NAME and ${NAME} in the configuration file with environment variables."});
  flags.add("web.listen-address", line.listen_addresses,
            {.help = "Address to listen on (repeatable): host:port, vsock://:port, unix:/path."});
  flags.add(
      "web.config.file", line.web_config_file,
      {.help = "Path of a web configuration file with TLS and users (exporter-toolkit format).",
       .env = "CEEMS_API_SERVER_WEB_CONFIG_FILE"});
  flags.add("web.route-prefix", line.route_prefix, {.help = "Path prefix of all endpoints."});
  flags.add("web.max-requests", line.max_requests,
            {.help = "Maximum number of requests per client and minute. 0 disables the limit."});
  flags.add("web.trusted-proxies", line.trusted_proxies,
            {.help = "Address or range of a proxy whose X-Forwarded-For and similar headers are "
                     "trusted (repeatable). By default every peer is trusted.",
             .placeholder = "ADDRESS"});
  flags.add("web.trusted-ip-prefix", line.trusted_ip_prefix,
            {.help = "Address or range of clients that --web.max-requests does not limit "
                     "(repeatable). It is the address of the peer or, behind one of "
                     "--web.trusted-proxies, the one that the proxy forwards.",
             .placeholder = "CIDR"});
  flags.add("web.cors.origin", line.cors_origin,
            {.help = "Regular expression for the origins that may make cross-origin requests. It "
                     "must match the whole origin."});
  flags.add("web.compression", line.compression,
            {.help = "Compress responses of 512 bytes and more (gzip, zstd)."});
  flags.add("web.compression.level", line.compression_level,
            {.help = "Compression level, from 1 (fastest) to 9 (smallest)."});
  flags.add("web.debug-server", line.debug_server,
            {.help = "Accepted for compatibility. This program has no profiler."});
  flags.add("web.systemd-socket", line.systemd_socket,
            {.help = "Use the sockets passed by systemd instead of --web.listen-address."});
  flags.add("health", line.health,
            {.help = "Only ask the running program, at its listen addresses, whether it answers; "
                     "the exit status is 0 if it does."});
  flags.add("db.migrate", line.migrate,
            {.help = "Upgrade a SQLite database to version 10 of CEEMS, the one of CEEMS 0.15, "
                     "even if no custom metric is configured, and complete such an upgrade that "
                     "was interrupted. A copy is made first. Releases before 0.15 do not open the "
                     "database any more."});
  flags.add("query.max-period", line.query_max_period,
            {.help = "Longest period (to - from) of a query. 0s disables the limit."});
  flags.add("security.run-as-user", line.run_as_user,
            {.help = "Name or number of the user to become when started as root."});
  flags.add("runtime.gomaxprocs", line.threads,
            {.help = "Number of threads that handle requests, raised to at least 4.",
             .env = "GOMAXPROCS"});
  flags.add_enum("log.level", line.log_level, {"debug", "info", "warn", "error"},
                 {.help = "Lowest level of the messages that are logged."});
  flags.add_enum("log.format", line.log_format, {"logfmt", "json"},
                 {.help = "Format of log lines."});
  flags.add(
      "web.external-url", line.external_url,
      {.help = "URL at which browsers reach the server, including the path that a proxy adds. "
               "Used for cookies, for logins at a provider and in the API description."});
  flags.add("web.user-header-name", line.user_headers,
            {.help = "Header that contains the name of the user (repeatable).", .hidden = true});
  flags.add("storage.data.skip.delete.old.units", line.skip_purge,
            {.help = "Never delete old units.", .hidden = true});
  flags.add("test.disable.checks", line.disable_checks,
            {.help = "Allow backup intervals of less than a day.", .hidden = true});
  flags.add("security.disable-cap-awareness", line.disable_cap_awareness,
            {.help = "Keep capabilities effective.", .hidden = true});
  flags.add("security.drop-privileges", line.drop_privileges,
            {.help = "Become another user when started as root.", .hidden = true});
}

Result<ApiOptions> api_options(const CommandLine& line) {
  ApiOptions options;
  const auto period = config::parse_duration(line.query_max_period);
  if (!period) {
    return fail(
        Error(period.error()).with_context("failed to parse option for --query.max-period"));
  }
  options.max_period_ms = period->count();
  if (auto cors = Cors::create(line.cors_origin, line.user_headers); !cors) {
    return fail(
        std::move(cors).error().with_context("failed to compile option for --web.cors.origin"));
  }
  if (line.max_requests < 0) {
    return fail(ErrorCode::kInvalidArgument, "--web.max-requests must not be negative");
  }
  options.route_prefix = line.route_prefix;
  options.cors_origin = line.cors_origin;
  options.user_headers = line.user_headers;
  options.max_requests = line.max_requests;
  options.trusted_proxies = line.trusted_proxies;
  options.trusted_ip_prefix = line.trusted_ip_prefix;
  options.external_url = line.external_url;
  return options;
}

Result<net::ServerOptions> server_options(const CommandLine& line) {
  constexpr long kMaxLevel = 9;
  constexpr long kMinThreads = 4;  // so that one slow query does not delay health checks
  constexpr long kMaxThreads = 64;
  if (line.compression && (line.compression_level < 1 || line.compression_level > kMaxLevel)) {
    return fail(ErrorCode::kInvalidArgument,
                "--web.compression.level must be between 1 and 9, got {}", line.compression_level);
  }
  net::ServerOptions options;
  options.listen_addresses = line.listen_addresses;
  options.systemd_socket = line.systemd_socket;
  options.web_config_file = line.web_config_file;
  options.threads = static_cast<int>(std::clamp(line.threads, kMinThreads, kMaxThreads));
  options.max_body_bytes = kMaxJobRequest;             // the form of a login is shorter
  options.give_back_after = std::chrono::seconds(10);  // sums over many units need much memory
  options.queue_key = [header = line.user_headers.empty() ? "" : line.user_headers.front()](
                          const net::Request& request) {
    const std::string* const user = net::find_header(request.headers, header);
    if (user != nullptr && !user->empty()) {
      return *user;
    }
    // Users with a session may all come from the address of one proxy.
    const std::string* const cookie = net::find_header(request.headers, "Cookie");
    return "@" + request.remote_address + (cookie == nullptr ? "" : "\n" + *cookie);
  };
  options.urgent = [path = line.route_prefix + (line.route_prefix.ends_with('/') ? "" : "/") +
                           "health"](const net::Request& request) { return request.path == path; };
  options.gzip_level = line.compression ? static_cast<int>(line.compression_level) : 0;
  return options;
}

}  // namespace ceems::api
