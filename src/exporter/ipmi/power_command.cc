#include "exporter/ipmi/power_command.h"

#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"

namespace ceems::exporter::ipmi {
namespace {

constexpr std::chrono::milliseconds kTimeout{5000};
constexpr std::size_t kMaxOutput = std::size_t{1} << 20U;
constexpr std::string_view kSystemPrograms = "/sbin:/usr/sbin:/usr/local/sbin";

struct KnownProgram {
  std::string_view name;
  std::vector<std::string> arguments;
};

std::vector<KnownProgram> known_programs() {
  return {{"ipmi-dcmi", {"--get-system-power-statistics"}},
          {"ipmitool", {"dcmi", "power", "reading"}},
          {"ipmiutil", {"dcmi", "power"}},
          {"capmc", {"get_system_power", "-w", "600"}}};
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

Format format_of(std::string_view program) {
  return base_name(program) == "capmc" ? Format::kCapmc : Format::kText;
}

std::string places(std::string_view search_path) {
  return fmt::format("{}:{}", search_path, kSystemPrograms);
}

std::string absolute_only(std::string_view search_path) {
  std::string kept;
  for (const std::string_view directory : split(search_path, ':')) {
    if (directory.starts_with('/')) {
      kept += (kept.empty() ? "" : ":") + std::string(directory);
    }
  }
  return kept;
}

std::string_view name_of(RunAs mode) {
  switch (mode) {
    case RunAs::kSelf:
      return "own user";
    case RunAs::kRoot:
      return "root";
    case RunAs::kSudo:
      return "sudo";
  }
  return "";
}

}  // namespace

std::optional<PowerProgram> search_program(std::string_view search_path) {
  const std::string everywhere = places(search_path);
  for (KnownProgram& known : known_programs()) {
    if (auto path = os::find_program(known.name, everywhere)) {
      return PowerProgram{.path = *std::move(path),
                          .arguments = std::move(known.arguments),
                          .format = format_of(known.name)};
    }
  }
  return std::nullopt;
}

Result<PowerProgram> program_of(std::string_view command, std::string_view search_path) {
  PowerProgram program;
  for (const std::string_view word : split(command, ' ')) {
    if (word.empty()) {
      continue;
    }
    if (program.path.empty()) {
      program.path = word;
    } else {
      program.arguments.emplace_back(word);
    }
  }
  if (program.path.empty()) {
    return fail(ErrorCode::kInvalidArgument, "the command is empty");
  }
  const bool by_sudo = base_name(program.path) == "sudo" && !program.arguments.empty();
  program.format = format_of(by_sudo ? program.arguments.front() : program.path);
  if (program.path.find('/') == std::string::npos) {
    CEEMS_TRY(found, os::find_program(program.path, places(search_path)));
    program.path = std::move(found);
  } else {
    program.path = std::filesystem::absolute(program.path).lexically_normal().string();
  }
  return program;
}

PowerCommand::PowerCommand(PowerCommandOptions options, os::CommandRunner& runner)
    : options_(std::move(options)), runner_(runner) {}

Result<Power> PowerCommand::read(const std::stop_token& stop) {
  if (mode_) {
    auto power = run(*mode_, stop);
    if (!power) {
      mode_.reset();
    }
    return power;
  }
  std::vector<RunAs> candidates{RunAs::kSelf};
  if (!options_.only_self) {
    const bool root = options_.may_become_root != nullptr && options_.may_become_root();
    candidates.push_back(root ? RunAs::kRoot : RunAs::kSudo);
  }
  if (candidates.back() == RunAs::kSudo && base_name(options_.program.path) == "sudo") {
    candidates.pop_back();
  }
  std::string refusals;
  ErrorCode code = ErrorCode::kUnavailable;
  for (const RunAs mode : candidates) {
    auto power = run(mode, stop);
    if (power) {
      mode_ = mode;
      log::debug("mode of running the power command chosen",
                 {{"collector", "ipmi_dcmi"}, {"as", name_of(mode)}});
      return power;
    }
    code = power.error().code;
    refusals += fmt::format("{}as {}: {}", refusals.empty() ? "" : "; ", name_of(mode),
                            power.error().message);
    if (stop.stop_requested()) {
      break;
    }
  }
  return fail(code, "{}", refusals);
}

Result<Power> PowerCommand::run(RunAs mode, const std::stop_token& stop) {
  os::Command command{.path = options_.program.path,
                      .arguments = options_.program.arguments,
                      .environment = {{"LC_ALL", "C"}, {"PATH", options_.system_path}},
                      .timeout = kTimeout,
                      .max_output_bytes = kMaxOutput,
                      .as_root = mode == RunAs::kRoot};
  if (mode == RunAs::kSelf) {
    if (std::string path = absolute_only(options_.search_path); !path.empty()) {
      command.environment["PATH"] = std::move(path);
    }
  }
  if (mode == RunAs::kRoot) {
    CEEMS_TRY(trusted, os::trusted_program(command.path));
    command.path = std::move(trusted);
  }
  if (mode == RunAs::kSudo) {
    CEEMS_TRY(sudo, os::find_program("sudo", options_.system_path));
    // -n makes sudo fail instead of asking for a password.
    command.arguments.insert(command.arguments.begin(), {"-n", "--", std::move(command.path)});
    command.path = std::move(sudo);
  }
  CEEMS_TRY(result, runner_.run(command, stop));
  if (result.exit_status != 0) {
    const std::string_view said = result.error_text.empty() ? result.output : result.error_text;
    std::string_view first = trim(said);
    first = take_until(first, '\n');
    return fail(ErrorCode::kUnavailable, "{} exited with status {}: {}", printable(command.path),
                result.exit_status, printable(first));
  }
  CEEMS_TRY_IN(printable(options_.program.path), power,
               parse_power_output(options_.program.format, result.output));
  return power;
}

}  // namespace ceems::exporter::ipmi
