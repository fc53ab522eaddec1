#include "exporter/energy/options.h"

#include <algorithm>

#include "base/strings.h"
#include "config/duration.h"

namespace ceems::exporter::energy {
namespace {

constexpr double kMaxWatts = 1e6;

std::optional<double> parse_watts(std::string_view text) {
  const auto watts = parse_double(text);
  return watts && *watts >= 0 && *watts <= kMaxWatts ? watts : std::nullopt;
}

}  // namespace

Result<IdleWatts> parse_idle_watts(std::string_view text) {
  IdleWatts watts{};
  std::string_view rest = trim(text);
  if (rest.empty()) {
    return watts;
  }
  if (const auto whole = parse_watts(rest)) {
    watts.at(index(Domain::kNode)) = whole;
    return watts;
  }
  for (bool more = true; more;) {
    more = rest.find(',') != std::string_view::npos;
    const std::string_view item = trim(take_until(rest, ','));
    std::string_view value = item;
    const std::string_view name = trim(take_until(value, '='));
    const auto domain = std::find_if(kDomains.begin(), kDomains.end(), [name](Domain candidate) {
      return to_string(candidate) == name;
    });
    const auto number = parse_watts(trim(value));
    if (domain == kDomains.end() || !number) {
      return fail(ErrorCode::kInvalidArgument,
                  "expected a number of watts or a list such as package=90,dram=12 "
                  "(package, dram, gpu, other, node), got '{}'",
                  printable(item));
    }
    auto& place = watts.at(index(*domain));
    if (place) {
      return fail(ErrorCode::kInvalidArgument, "idle watts of {} are given twice", name);
    }
    place = number;
  }
  return watts;
}

Result<double> parse_second_thread(std::string_view text) {
  const auto value = parse_double(trim(text));
  if (!value || !(*value >= 0) || *value > 1) {
    return fail(ErrorCode::kInvalidArgument, "expected a number in 0...1, got '{}'",
                printable(text));
  }
  return *value;
}

Result<std::optional<ModelWatts>> parse_model_watts(std::string_view text) {
  std::string_view rest = trim(text);
  if (rest.empty()) {
    return std::nullopt;
  }
  std::optional<double> idle;
  std::optional<double> full;
  for (bool more = true; more;) {
    more = rest.find(',') != std::string_view::npos;
    const std::string_view item = trim(take_until(rest, ','));
    std::string_view value = item;
    const std::string_view name = trim(take_until(value, '='));
    auto& place = name == "idle" ? idle : full;
    const auto number = parse_watts(trim(value));
    if ((name != "idle" && name != "full") || !number || *number <= 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "expected two readings in watts, such as idle=95,full=410, got '{}'",
                  printable(item));
    }
    if (place) {
      return fail(ErrorCode::kInvalidArgument, "the watts of {} are given twice", name);
    }
    place = number;
  }
  if (!idle || !full) {
    return fail(ErrorCode::kInvalidArgument,
                "expected two readings in watts, such as idle=95,full=410, got only {}",
                idle ? "idle" : "full");
  }
  if (*idle > *full) {
    return fail(ErrorCode::kInvalidArgument,
                "expected less power when idle than at full load, got idle={} and full={}", *idle,
                *full);
  }
  return ModelWatts{.idle = *idle, .full = *full};
}

std::string default_state_file(const char* directories) {
  std::string_view rest = directories != nullptr ? directories : "";
  const std::string_view first = take_until(rest, ':');
  return first.starts_with('/') ? std::string(first) + "/energy.json" : std::string();
}

Result<std::chrono::milliseconds> parse_duration(std::string_view flag,
                                                 std::string_view text,
                                                 std::chrono::milliseconds min,
                                                 std::chrono::milliseconds max) {
  CEEMS_TRY_IN(flag, value, config::parse_duration(text));
  if (value < min || value > max) {
    return fail(ErrorCode::kInvalidArgument, "{}: expected {} to {}, got '{}'", flag,
                config::go_duration(min), config::go_duration(max), printable(text));
  }
  return value;
}

}  // namespace ceems::exporter::energy
