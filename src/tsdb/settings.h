#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ceems::tsdb {

/// The settings that the status endpoints of a TSDB return. Settings that they do not contain keep
/// their defaults (VictoriaMetrics has the endpoints but returns an empty configuration and no
/// flags).
struct Settings {
  std::chrono::milliseconds scrape_interval{std::chrono::minutes(1)};
  std::chrono::milliseconds evaluation_interval{std::chrono::minutes(1)};
  std::chrono::milliseconds lookback_delta{std::chrono::minutes(5)};
  std::chrono::milliseconds query_timeout{std::chrono::minutes(2)};
  std::uint64_t max_samples = 50'000'000;
  std::optional<std::chrono::milliseconds> retention;

  /// The shortest range in which every live counter has at least four samples.
  [[nodiscard]] std::chrono::milliseconds rate_interval() const { return 4 * scrape_interval; }
};

/// Parses a Prometheus duration: "1h30m", "15s", "500ms", "0". Nothing for any other text.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// Reads scrape_interval and evaluation_interval from the block `global` of a configuration as
/// Prometheus prints it (YAML in block style, from its own marshaller). Missing values are not
/// changed.
void apply_config(std::string_view yaml, Settings& settings);

/// Applies one command-line flag of the TSDB, e.g. "query.max-samples", "50000000". Ignores values
/// that do not parse or are 0.
void apply_flag(std::string_view name, std::string_view value, Settings& settings);

/// Applies `storageRetention` of runtimeinfo: "15d", "512MiB" or "15d or 512MiB".
void apply_retention(std::string_view text, Settings& settings);

}  // namespace ceems::tsdb
