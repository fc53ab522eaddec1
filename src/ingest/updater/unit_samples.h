#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ingest/updater/counter.h"
#include "ingest/updater/unit_counters.h"
#include "model/unit.h"
#include "tsdb/client.h"

namespace ceems::ingest {

/// The samples of one series of a unit.
struct UnitSeries {
  std::string uuid;
  std::string origin;  ///< host and manager
  std::string part;    ///< the domain of energy, or the GPU; empty for other metrics
  CounterSeries counter;
};

/// The series of one metric by uuid.
using UnitHistory = std::map<std::string, std::vector<UnitSeries>, std::less<>>;

/// The result of a first query about a unit: which hosts and energy domains exist.
struct UnitPresence {
  std::map<std::string, double> cpus;  ///< by origin
  std::map<std::string, std::set<std::string>> domains;
  std::size_t series = 0;
};

/// Returns the host and manager of a series. The scraped address may change while the counter
/// continues, so it is used only if there is no hostname.
std::string origin_of(const tsdb::Labels& labels);

/// Reads the exporter's series of the units of one update. The samples span (start - reach(), end +
/// settle]. The arguments of the constructor must outlive the object. Not thread-safe.
class UnitSamples {
 public:
  UnitSamples(tsdb::Client& client,
              const tsdb::Settings& settings,
              const CounterRequest& request,
              const std::vector<model::Unit>& units,
              std::stop_token stop);

  /// Which of the units have series, by uuid.
  Result<std::map<std::string, UnitPresence>> find_presence();

  /// Runs `function(selector[whole range])` at the end of the range.
  Result<tsdb::QueryAnswer> over_range(std::string_view function, const std::string& selection);
  /// Reads the raw samples of the whole range, in parts.
  Result<UnitHistory> raw(const std::string& selection);
  /// Reads the raw samples of a counter. If they begin within the window although the unit is older
  /// than the range (the target was down for longer than the lookback), the value before them is
  /// queried. If there never was one, counting begins with the first sample.
  Result<UnitHistory> raw_counter(const std::string& selection);

  [[nodiscard]] bool knows(std::string_view uuid) const { return by_uuid_.contains(uuid); }
  /// The places in the list of the units with this uuid, ordered by their start.
  [[nodiscard]] const std::vector<std::size_t>& places_of(const std::string& uuid) const {
    return by_uuid_.at(uuid);
  }
  /// Returns the time span (from, to] of the samples that belong to a unit.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> span_of(std::size_t index) const;
  /// The longest pause between samples that does not interrupt a series.
  [[nodiscard]] std::chrono::milliseconds reach() const { return reach_; }
  /// How many samples a query for one series returns at most.
  [[nodiscard]] std::int64_t samples_per_series() const;

  /// Returns what the hosts counted; nothing if there is no series that `wanted` accepts.
  template <typename Wanted>
  [[nodiscard]] std::optional<std::vector<Increment>> increments(const UnitHistory& history,
                                                                 std::size_t index,
                                                                 Wanted&& wanted) const {
    const auto found = history.find(units_[index].uuid);
    if (found == history.end()) {
      return std::nullopt;
    }
    std::map<std::pair<std::string, std::string>, std::vector<CounterSeries>> origins;
    for (const auto& series : found->second) {
      if (wanted(series)) {
        origins[{series.origin, series.part}].push_back(series.counter);
      }
    }
    if (origins.empty()) {
      return std::nullopt;
    }
    const auto [from, to] = span_of(index);
    std::vector<Increment> all;
    for (auto& [origin, counters] : origins) {
      const auto part = origin_increments(std::move(counters), from, to);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

 private:
  [[nodiscard]] Result<> check_stop() const;
  [[nodiscard]] tsdb::Client::InstantQuery at(std::string query, std::int64_t time_ms) const;

  tsdb::Client& client_;
  const tsdb::Settings& settings_;
  const CounterRequest& request_;
  const model::Window window_;
  const std::vector<model::Unit>& units_;
  const std::stop_token stop_;
  const std::chrono::milliseconds reach_;
  const std::int64_t first_ms_;
  const std::int64_t last_ms_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_uuid_;  ///< ordered by start
};

/// The selector of the series of these units; `more` are further matchers, with a comma first.
std::string series_of(std::string_view metric,
                      const std::vector<std::string>& uuids,
                      std::string_view more = "");

/// How many units one query may name.
inline constexpr std::size_t kUnitsPerQuery = 200;

}  // namespace ceems::ingest
