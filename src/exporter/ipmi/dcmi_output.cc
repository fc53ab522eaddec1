#include "exporter/ipmi/dcmi_output.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include <boost/json.hpp>

#include "base/strings.h"
#include "base/utf8.h"

namespace ceems::exporter::ipmi {
namespace {

namespace json = boost::json;

/// Larger values are invalid: the largest computing centres draw less.
constexpr double kMaxWatts = 1e9;

double plausible(double watts) {
  return watts >= 0 && watts <= kMaxWatts ? watts : 0;
}

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
    watts_ = plausible(parse_double(value->substr(0, digits)).value_or(0));
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
  Power power{.current = plausible(number(object, "current")),
              .minimum = plausible(number(object, "min")),
              .maximum = plausible(number(object, "max")),
              .average = plausible(number(object, "avg"))};
  if (power.average > 0) {
    power.current = power.average;
  }
  return power;
}

}  // namespace

Result<Power> parse_power_output(Format format, std::string_view output) {
  if (!is_utf8(output) || output.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::kParse, "the output is not text");
  }
  return format == Format::kCapmc ? parse_capmc(output) : parse_text(output);
}

}  // namespace ceems::exporter::ipmi
