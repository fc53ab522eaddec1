#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "exporter/ipmi/conversation.h"
#include "exporter/ipmi/dcmi.h"
#include "os/command.h"

namespace ceems::exporter::ipmi {

/// The program whose output is parsed.
enum class Format {
  kText,   ///< FreeIPMI's ipmi-dcmi, ipmitool, ipmiutil
  kCapmc,  ///< Cray's capmc: power of the whole system, not of this node
};

/// Parses the standard output of a program. Each line is parsed on its own, and the first that
/// matches counts. kUnavailable: the tool reports that power is not measured, or an error. kParse:
/// not text, an unexpected form, or no line with the state. A quantity that is missing or not a
/// number is 0.
Result<Power> parse_power_output(Format format, std::string_view output);

/// A command that prints the power of the node.
struct PowerProgram {
  std::string path;  ///< absolute
  std::vector<std::string> arguments;
  Format format = Format::kText;
};

/// The first of ipmi-dcmi, ipmitool, ipmiutil and capmc in the directories of `search_path` (only
/// absolute ones) and the usual directories of system programs, with its arguments.
std::optional<PowerProgram> search_program(std::string_view search_path);

/// Splits the text of --collector.ipmi_dcmi.cmd at single blanks. Its first word is a path or a
/// name to search for. kInvalidArgument for an empty text, kNotFound for a name that is not found.
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
  std::string search_path;  ///< the exporter's PATH
  /// PATH of commands that run as root, and where sudo is searched for.
  std::string system_path = "/usr/sbin:/usr/bin:/sbin:/bin";
  /// Whether the process has the capabilities to become root. Called by the first read, which is
  /// after privileges were dropped.
  bool (*may_become_root)() = nullptr;
};

/// Reads power with a command. The first read runs it directly, then as root if the process may do
/// that, then with sudo. The mode that returned a reading is used until it fails.
///
/// The commands' environment is only LC_ALL=C and a PATH. A command that runs as the exporter's
/// user gets the exporter's PATH without entries that are not absolute. As root it gets a fixed
/// PATH, and the program must pass os::trusted_program(). Limits: 5 s and 1 MiB of output. Used by
/// one thread at a time.
class PowerCommand {
 public:
  PowerCommand(PowerCommandOptions options, os::CommandRunner& runner);

  /// Errors: the refusals of all modes that were tried.
  Result<Power> read(const std::stop_token& stop);
  /// How the last good reading was obtained.
  [[nodiscard]] std::optional<RunAs> mode() const { return mode_; }

 private:
  Result<Power> run(RunAs mode, const std::stop_token& stop);

  PowerCommandOptions options_;
  os::CommandRunner& runner_;
  std::optional<RunAs> mode_;
};

/// Reads power through the device, which is opened again if it disappears. Used by one thread at a
/// time.
class NativePower {
 public:
  NativePower(Device::Open open, std::chrono::milliseconds timeout)
      : device_(std::move(open), timeout) {}

  /// Opens the device unless it is open.
  Result<> open() { return device_.open(); }
  Result<Power> read(const std::stop_token& stop);

 private:
  Device device_;
};

/// The sources of power readings on this node. Each read uses the first one that works.
class PowerReader {
 public:
  /// If both are given, the device comes second, because it had no reading at the start.
  PowerReader(std::unique_ptr<PowerCommand> command, std::unique_ptr<NativePower> native)
      : command_(std::move(command)), native_(std::move(native)) {}

  Result<Power> read(const std::stop_token& stop);

 private:
  std::unique_ptr<PowerCommand> command_;
  std::unique_ptr<NativePower> native_;
};

}  // namespace ceems::exporter::ipmi
