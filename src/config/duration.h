#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::config {

/// Parses a duration in the syntax of Prometheus: whole numbers, each followed by a unit, from the
/// largest unit to the smallest and each unit at most once, such as "1d12h" or "500ms"; or "0". The
/// units are y (365 days), w, d, h, m, s and ms; see
/// https://prometheus.io/docs/prometheus/latest/configuration/configuration/. Returns
/// kInvalidArgument for any other text and for more than 292 years. The messages are those of CEEMS
/// 0.10.2.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// Parses the value of a flag: in the syntax of Prometheus or in that of Go, which has fractions,
/// any order of units, ns and us, but no days ("1.5h", "1m0.5s"). Less than a millisecond is
/// dropped. Negative durations are refused.
Result<std::chrono::milliseconds> parse_flag_duration(std::string_view text);

/// Formats a duration as Go does: "1h0m0s", "1m0s", "1.5s", "500ms", "0s", "-15s".
std::string go_duration(std::chrono::milliseconds duration);

/// The same, or milliseconds where Go writes a fraction, which Prometheus does not read: "1m0s",
/// "1500ms".
std::string prometheus_duration(std::chrono::milliseconds duration);

}  // namespace ceems::config
