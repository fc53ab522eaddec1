#include "exporter/accept.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace ceems::exporter {
namespace {

constexpr std::array<std::string_view, 4> kEscapings{"allow-utf-8", "underscores", "dots",
                                                     "values"};

struct Range {
  std::string type = {};
  double weight = 1;
  std::string_view version = {};
  std::string_view escaping = "underscores";
};

Range parse_range(std::string_view text) {
  Range range;
  range.type = to_lower(trim(take_until(text, ';')));
  while (!text.empty()) {
    std::string_view value = take_until(text, ';');
    const std::string key = to_lower(trim(take_until(value, '=')));
    value = trim(value);
    if (key == "q") {
      range.weight = parse_double(value).value_or(0);
    } else if (key == "version") {
      range.version = value;
    } else if (key == "escaping" && std::ranges::find(kEscapings, value) != kEscapings.end()) {
      range.escaping = value;
    }
  }
  return range;
}

}  // namespace

PageFormat choose_format(std::string_view accept) {
  Range open_metrics{.weight = 0};
  Range text{.weight = 0};
  while (!accept.empty()) {
    const Range range = parse_range(take_until(accept, ','));
    const bool known_version =
        range.version.empty() || range.version == "1.0.0" || range.version == "0.0.1";
    if (range.type == "application/openmetrics-text" && known_version &&
        range.weight > open_metrics.weight) {
      open_metrics = range;
    } else if ((range.type == "text/plain" || range.type == "text/*" || range.type == "*/*") &&
               range.weight > text.weight) {
      text = range;
    }
  }
  PageFormat format;
  if (open_metrics.weight > 0 && open_metrics.weight >= text.weight) {
    format.exposition = metrics::Exposition::kOpenMetrics;
    format.content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=";
    format.content_type += open_metrics.escaping;
  } else {
    format.content_type = "text/plain; version=0.0.4; charset=utf-8; escaping=";
    format.content_type += text.escaping;
  }
  return format;
}

}  // namespace ceems::exporter
