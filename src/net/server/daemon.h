#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/flags.h"
#include "net/server/health.h"
#include "os/privileges.h"

namespace ceems::net {

// What our servers do alike when they start and until they stop. os/daemon.h has the part that
// daemons without a server need, too.

/// Flags that several of our servers have with the same meaning.
struct DaemonFlags {
  bool health = false;  ///< only ask the running program
  std::string run_as_user = os::default_run_as_user();
  long threads = 1;
  std::string log_level = "info";
  std::string log_format = "logfmt";
  bool drop_privileges = true;
};

/// Registers them in this order. `threads` and `log_level` are the help of two of them.
void add_flags(config::FlagSet& flags,
               DaemonFlags& daemon,
               std::string threads,
               std::string log_level = "Lowest level of the messages that are logged.");

/// Reads the command line. Returns the exit status if the program has nothing else to do: after
/// --help, an error, or --health. `health`, `addresses` and `health_path` are read after parsing,
/// so they may be targets of flags; if `health` is then true, the addresses are asked.
std::optional<int> parse_flags(config::FlagSet& flags,
                               int argc,
                               const char* const* argv,
                               const bool& health,
                               const std::vector<std::string>& addresses,
                               std::string_view health_path = kHealthPath);

/// os::drop_privileges(), unless the flags say otherwise.
Result<> drop_privileges(const DaemonFlags& daemon, const std::vector<os::Capability>& keep);

/// os::serve_until_stopped() for a server that listens at these addresses: systemd's watchdog is
/// notified as long as all of them react within 10 s.
void serve_until_stopped(const std::vector<std::string>& addresses,
                         const std::function<void()>& on_hangup,
                         std::string_view health_path = kHealthPath);

}  // namespace ceems::net
