#include "exporter/ipmi/power_command.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace ceems::exporter::ipmi {
namespace {

namespace json = boost::json;

/// The text after "LABEL :" in a line that starts with one of the labels.
std::optional<std::string_view> value_of(std::string_view line,
                                         std::span<const std::string_view> labels) {
  line = trim(line);
  for (const std::string_view label : labels) {
    if (!line.starts_with(label)) {
      continue;
    }
    const std::string_view rest = trim(line.substr(label.size()));
    if (rest.starts_with(':')) {
      return trim(rest.substr(1));
    }
  }
  return std::nullopt;
}

/// Searches the lines for one quantity.
class Quantity {
 public:
  explicit Quantity(std::span<const std::string_view> labels) : labels_(labels) {}

  void look_at(std::string_view line) {
    if (found_) {
      return;
    }
    const auto value = value_of(line, labels_);
    if (!value) {
      return;
    }
    const std::size_t digits = std::min(value->find_first_not_of("0123456789."), value->size());
    const std::string_view unit = trim(value->substr(digits));
    if (digits == 0 || !(unit.starts_with("Watts") || unit.starts_with("watts"))) {
      return;
    }
    found_ = true;
    watts_ = plausible_watts(parse_double(value->substr(0, digits)).value_or(0));
  }
  [[nodiscard]] double watts() const { return watts_; }

 private:
  std::span<const std::string_view> labels_;
  bool found_ = false;
  double watts_ = 0;
};

constexpr std::array<std::string_view, 2> kState{"Power Measurement", "Power reading state is"};
constexpr std::array<std::string_view, 2> kCurrent{"Current Power", "Instantaneous power reading"};
constexpr std::array<std::string_view, 3> kMinimum{"Minimum Power over sampling duration",
                                                   "Minimum during sampling period",
                                                   "Min Power over sample duration"};
constexpr std::array<std::string_view, 3> kMaximum{"Maximum Power over sampling duration",
                                                   "Maximum during sampling period",
                                                   "Max Power over sample duration"};
constexpr std::array<std::string_view, 3> kAverage{"Average Power over sampling duration",
                                                   "Average power reading over sample period",
                                                   "Avg Power over sample duration"};
constexpr std::array<std::string_view, 3> kActive{"Active", "active", "activated"};
constexpr std::array<std::string_view, 3> kInactive{"Not Available", "not active", "deactivated"};

Result<Power> parse_text(std::string_view output) {
  Quantity current(kCurrent);
  Quantity minimum(kMinimum);
  Quantity maximum(kMaximum);
  Quantity average(kAverage);
  std::optional<bool> active;
  while (!output.empty()) {
    const std::string_view line = take_until(output, '\n');
    for (Quantity* quantity : {&current, &minimum, &maximum, &average}) {
      quantity->look_at(line);
    }
    const auto state = active ? std::nullopt : value_of(line, kState);
    if (state && std::ranges::find(kActive, *state) != kActive.end()) {
      active = true;
    } else if (state && std::ranges::find(kInactive, *state) != kInactive.end()) {
      active = false;
    }
  }
  if (!active) {
    return fail(ErrorCode::kParse, "the output has no line with the state of power measurement");
  }
  if (!*active) {
    return fail(ErrorCode::kUnavailable, "power measurement is not active");
  }
  return Power{.current = current.watts(),
               .minimum = minimum.watts(),
               .maximum = maximum.watts(),
               .average = average.watts()};
}

double number(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

Result<Power> parse_capmc(std::string_view output) {
  boost::system::error_code error;
  const json::value document = json::parse(json::string_view(output.data(), output.size()), error);
  if (error || !document.is_object()) {
    return fail(ErrorCode::kParse, "expected one JSON object");
  }
  const json::object& object = document.get_object();
  const json::value* message = object.if_contains("err_msg");
  if (number(object, "e") != 0 && message != nullptr && message->is_string()) {
    return fail(ErrorCode::kUnavailable, "error {}: {}", number(object, "e"),
                printable(message->get_string()));
  }
  Power power{.current = plausible_watts(number(object, "current")),
              .minimum = plausible_watts(number(object, "min")),
              .maximum = plausible_watts(number(object, "max")),
              .average = plausible_watts(number(object, "avg"))};
  if (power.average > 0) {
    power.current = power.average;
  }
  return power;
}

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

Result<Power> parse_power_output(Format format, std::string_view output) {
  if (!is_utf8(output) || output.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::kParse, "the output is not text");
  }
  return format == Format::kCapmc ? parse_capmc(output) : parse_text(output);
}

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

Result<Power> NativePower::read(const std::stop_token& stop) {
  CEEMS_TRY_IN("DCMI power reading", answer, device_.ask(power_reading_request(), stop));
  CEEMS_TRY_IN("DCMI power reading", power, decode_power_reading(answer));
  return power;
}

Result<Power> PowerReader::read(const std::stop_token& stop) {
  if (!command_) {
    return native_->read(stop);
  }
  auto power = command_->read(stop);
  if (power || !native_ || stop.stop_requested()) {
    return power;
  }
  auto by_device = native_->read(stop);
  return by_device ? by_device : power;
}

}  // namespace ceems::exporter::ipmi
