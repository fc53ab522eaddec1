#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/ipmi/dcmi.h"
#include "exporter/ipmi/dcmi_output.h"
#include "os/command.h"

namespace ceems::exporter::ipmi {

/// A command that prints the power of the node.
struct PowerProgram {
  std::string path;  ///< absolute
  std::vector<std::string> arguments;
  Format format = Format::kText;
};

/// The first of ipmi-dcmi, ipmitool, ipmiutil and capmc in the directories of `search_path` (only
/// absolute ones count) and the usual places of system programs, with its arguments.
std::optional<PowerProgram> search_program(std::string_view search_path);

/// The text of --collector.ipmi_dcmi.cmd, split at single blanks; its first word is a path or a
/// name to search for. kInvalidArgument for an empty text, kNotFound for a name that is nowhere.
Result<PowerProgram> program_of(std::string_view command, std::string_view search_path);

/// How a command is started.
enum class RunAs {
  kSelf,  ///< as the user of the exporter
  kRoot,  ///< as root, with CAP_SETUID and CAP_SETGID
  kSudo,  ///< through sudo, which must not ask for a password
};

struct PowerCommandOptions {
  PowerProgram program;
  bool only_self = false;   ///< never as root (--collector.ipmi_dcmi.test-mode)
  std::string search_path;  ///< the exporter's own PATH
  /// PATH of what runs as root, and where sudo is.
  std::string system_path = "/usr/sbin:/usr/bin:/sbin:/bin";
  /// Whether the capabilities to become root are there. Asked by the first read, i.e. after
  /// privileges were dropped.
  bool (*may_become_root)() = nullptr;
};

/// Reads power by a command. The first read tries plain execution, then as root where the process
/// may do that, else by sudo; what gave a reading is remembered until it fails.
///
/// Children get an environment of their own: LC_ALL=C and a PATH. Run as the exporter's user that
/// is the exporter's PATH without entries that are not absolute; as root it is a fixed one, and the
/// program is one that os::trusted_program() lets pass. 5 s and 1 MiB of output at most.
/// Used by one thread at a time.
class PowerCommand {
 public:
  PowerCommand(PowerCommandOptions options, os::CommandRunner& runner);

  Result<Power> read(const std::stop_token& stop);
  /// How the last good reading came about.
  [[nodiscard]] std::optional<RunAs> mode() const { return mode_; }

 private:
  Result<Power> run(RunAs mode, const std::stop_token& stop);

  PowerCommandOptions options_;
  os::CommandRunner& runner_;
  std::optional<RunAs> mode_;
};

}  // namespace ceems::exporter::ipmi
