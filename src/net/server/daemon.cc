#include "net/server/daemon.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "os/daemon.h"

namespace ceems::net {

void add_flags(config::FlagSet& flags,
               DaemonFlags& daemon,
               std::string threads,
               std::string log_level) {
  flags.add("health", daemon.health,
            {.help = "Only ask the running program, at its listen addresses, whether it answers; "
                     "the exit status is 0 if it does."});
  flags.add("security.run-as-user", daemon.run_as_user,
            {.help = "Name or number of the user to become when started as root."});
  flags.add("runtime.gomaxprocs", daemon.threads,
            {.help = std::move(threads), .env = "GOMAXPROCS"});
  flags.add_enum("log.level", daemon.log_level, {"debug", "info", "warn", "error"},
                 {.help = std::move(log_level)});
  flags.add_enum("log.format", daemon.log_format, {"logfmt", "json"},
                 {.help = "Format of log lines."});
  flags.add("security.drop-privileges", daemon.drop_privileges,
            {.help = "Become another user when started as root.", .hidden = true});
}

std::optional<int> parse_flags(config::FlagSet& flags,
                               int argc,
                               const char* const* argv,
                               const bool& health,
                               const std::vector<std::string>& addresses,
                               std::string_view health_path) {
  const auto outcome = flags.parse(argc, argv);
  if (outcome.exit) {
    fmt::print(*outcome.exit == 0 ? stdout : stderr, "{}", outcome.text);
    return outcome.exit;
  }
  return health ? std::optional(report_health(addresses, health_path)) : std::nullopt;
}

Result<> drop_privileges(const DaemonFlags& daemon, const std::vector<os::Capability>& keep) {
  if (!daemon.drop_privileges) {
    return {};
  }
  CEEMS_TRY_IN("dropping privileges", os::drop_privileges(daemon.run_as_user, keep));
  return {};
}

void serve_until_stopped(const std::vector<std::string>& addresses,
                         const std::function<void()>& on_hangup,
                         std::string_view health_path) {
  constexpr std::chrono::seconds kReaction{10};
  os::serve_until_stopped(on_hangup, [&] { return all_react(addresses, kReaction, health_path); });
}

}  // namespace ceems::net
