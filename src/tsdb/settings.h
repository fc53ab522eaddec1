#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ceems::tsdb {

/// What the status endpoints tell about a TSDB; defaults where they say nothing (VictoriaMetrics
/// has the endpoints but answers with an empty configuration and no flags).
struct Settings {
  std::chrono::milliseconds scrape_interval{std::chrono::minutes(1)};
  std::chrono::milliseconds evaluation_interval{std::chrono::minutes(1)};
  std::chrono::milliseconds lookback_delta{std::chrono::minutes(5)};
  std::chrono::milliseconds query_timeout{std::chrono::minutes(2)};
  std::uint64_t max_samples = 50'000'000;
  std::optional<std::chrono::milliseconds> retention;

  /// Shortest range in which every live counter has at least four samples.
  [[nodiscard]] std::chrono::milliseconds rate_interval() const { return 4 * scrape_interval; }
};

/// Prometheus duration text, "1h30m", "15s", "500ms", "0"; nothing on anything else.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// Takes scrape_interval and evaluation_interval of the block `global` from a configuration as
/// Prometheus prints it (YAML, block style, sorted by its own marshaller). Leaves what is not
/// there.
void apply_config(std::string_view yaml, Settings& settings);

/// Takes one command-line flag of the TSDB, e.g. "query.max-samples", "50000000". Values that do
/// not parse or are 0 are left out.
void apply_flag(std::string_view name, std::string_view value, Settings& settings);

/// Takes `storageRetention` of runtimeinfo: "15d", "512MiB" or "15d or 512MiB".
void apply_retention(std::string_view text, Settings& settings);

}  // namespace ceems::tsdb
