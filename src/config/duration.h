#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::config {

/// Reads a duration in the syntax of Prometheus: whole numbers, each with a unit, the biggest unit
/// first and none twice, such as "1d12h" and "500ms"; or "0". Units: y (365 days), w, d, h, m, s,
/// ms. https://prometheus.io/docs/prometheus/latest/configuration/configuration/
/// kInvalidArgument for any other text and for more than 292 years; the messages are those of
/// CEEMS 0.10.2.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// The text that Go prints for a duration: "1h0m0s", "1m0s", "1.5s", "500ms", "0s", "-15s".
std::string go_duration(std::chrono::milliseconds duration);

}  // namespace ceems::config
