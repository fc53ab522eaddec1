#include "api/tsdb/hour_energy.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/time/durations.h"

namespace ceems::api {
namespace {

constexpr std::size_t kUnitsPerQuery = 100;
/// VictoriaMetrics moves the times of queries with 50 or more steps to multiples of the step, which
/// hours are not in all time zones.
constexpr std::size_t kHoursPerQuery = 24;

/// What counters {0} have counted in the hour. Several targets may have copies of a counter.
constexpr std::string_view kGrown =
    "max without (instance, job) ((last_over_time({0}[1h]) - last_over_time({0}[1h] offset 1h))"
    " >= 0 or increase({0}[1h]))";
/// The same if those without a value in the hour before began at 0.
constexpr std::string_view kGrownFromZero =
    "max without (instance, job) ((last_over_time({0}[1h]) - last_over_time({0}[1h] offset 1h))"
    " >= 0 or (last_over_time({0}[1h]) unless last_over_time({0}[1h] offset 1h))"
    " or increase({0}[1h]))";

/// The sum over nodes, by `by`, of the domain "node" or of the others, or of the GPUs' domain.
std::string sum_of(std::string_view counted,
                   const std::string& matchers,
                   std::string_view by,
                   bool gpus) {
  const auto of = [&](std::string_view domain) {
    return fmt::format(
        fmt::runtime(counted),
        fmt::format("ceems_compute_unit_energy_joules_total{{domain{}{}}}", domain, matchers));
  };
  if (gpus) {
    return fmt::format("sum{} ({})", by, of("=~\"gpu.*\""));
  }
  return fmt::format("sum{} (sum without (domain) ({}) or sum without (domain) ({}))", by,
                     of("=\"node\""), of("!=\"node\""));
}

std::string labelled(const std::string& query, std::string_view kind) {
  return fmt::format(R"(label_replace({}, "kind", "{}", "", ""))", query, kind);
}

std::optional<double>* place_of(HourEnergy& energy, std::string_view kind) {
  if (kind == "all") {
    return &energy.all;
  }
  if (kind == "gpus") {
    return &energy.gpus;
  }
  if (kind == "all_of_new") {
    return &energy.all_of_new;
  }
  return kind == "gpus_of_new" ? &energy.gpus_of_new : nullptr;
}

void add_answer(const tsdb::QueryAnswer& answer,
                const std::vector<std::int64_t>& hours,
                EnergyByUnit& energy) {
  for (const tsdb::Series& series : answer.series) {
    auto& row = energy[std::string(series.labels.get("uuid"))];
    row.resize(hours.size());
    for (const tsdb::Sample& sample : series.samples) {
      const std::int64_t after = sample.time_ms - kUsageHourMs - hours.front();
      const std::int64_t hour = after / kUsageHourMs;
      if (after < 0 || after % kUsageHourMs != 0 || std::cmp_greater_equal(hour, hours.size()) ||
          !std::isfinite(sample.value) || sample.value < 0) {
        continue;
      }
      HourEnergy& one = row[static_cast<std::size_t>(hour)];
      if (auto* const place = place_of(one, series.labels.get("kind"))) {
        *place = sample.value / kJoulesPerKwh;
      }
    }
  }
}

/// The ids of units that lived in the period or a little before it, each once.
std::vector<std::string> ids_alive(const std::vector<HourUnit>& units,
                                   std::int64_t from_ms,
                                   std::int64_t to_ms) {
  std::set<std::string> ids;
  for (const HourUnit& unit : units) {
    if (unit.started_ms < to_ms && (unit.ended_ms == 0 || unit.ended_ms + kHourSlackMs > from_ms)) {
      ids.insert(unit.uuid);
    }
  }
  return {ids.begin(), ids.end()};
}

/// One life of an id. `unit` is the place of the unit; others have none.
struct Life {
  std::int64_t started_ms = 0, ended_ms = 0;
  std::optional<std::size_t> unit = {};
};

/// Lives in the order of time. What seems to run has ended when the next one starts.
using Lives = std::map<std::string, std::vector<Life>, std::less<>>;

Lives lives_of(const std::vector<HourUnit>& units, const std::vector<HourLife>& others) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;
  Lives lives;
  const auto add = [&lives](const std::string& uuid, Life life) {
    if (life.started_ms > 0) {
      life.ended_ms = life.ended_ms > 0 ? life.ended_ms : kNever;
      lives[uuid].push_back(life);
    }
  };
  for (std::size_t i = 0; i < units.size(); ++i) {
    add(units[i].uuid,
        {.started_ms = units[i].started_ms, .ended_ms = units[i].ended_ms, .unit = i});
  }
  for (const HourLife& other : others) {
    add(other.uuid, {.started_ms = other.started_ms, .ended_ms = other.ended_ms});
  }
  for (auto& [uuid, all] : lives) {
    std::ranges::stable_sort(all, {}, &Life::started_ms);
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      if (all[i].ended_ms == kNever) {
        all[i].ended_ms = all[i + 1].started_ms;
      }
    }
  }
  return lives;
}

/// The unit to which the hour belongs. Nothing if there is none, or if it may be several people's.
std::optional<std::size_t> unit_of_hour(const std::vector<Life>& lives,
                                        const std::vector<HourUnit>& units,
                                        std::int64_t hour_ms) {
  std::optional<std::size_t> found;
  for (const Life& life : lives) {
    if (life.started_ms >= hour_ms + kUsageHourMs || life.ended_ms + kHourSlackMs <= hour_ms) {
      continue;
    }
    if (!life.unit) {
      return std::nullopt;
    }
    const HourUnit& unit = units[*life.unit];
    if (found && (units[*found].user != unit.user || units[*found].project != unit.project)) {
      return std::nullopt;
    }
    found = life.unit;
  }
  return found;
}

}  // namespace

std::vector<std::int64_t> hours_of(std::int64_t from_ms, std::int64_t to_ms, const TimeZone& zone) {
  const std::int64_t day = zone.day_start(from_ms);
  std::vector<std::int64_t> hours;
  for (std::int64_t hour = day + (from_ms - day) / kUsageHourMs * kUsageHourMs; hour <= to_ms;
       hour += kUsageHourMs) {
    hours.push_back(hour);
  }
  return hours;
}

double share_of_hour(const HourUnit& unit, std::int64_t hour_ms, std::int64_t now_ms) {
  const std::int64_t end = unit.ended_ms > 0 ? std::min(unit.ended_ms, now_ms) : now_ms;
  const std::int64_t ran =
      std::min(end, hour_ms + kUsageHourMs) - std::max(unit.started_ms, hour_ms);
  return unit.started_ms > 0 && ran > 0 ? static_cast<double>(ran) / kUsageHourMs : 0;
}

std::string energy_query(const std::string& ids, const std::string& cluster_matcher, bool gpus) {
  const bool whole = ids.empty();
  const std::string matchers =
      (whole ? ",uuid!=\"\"" : fmt::format(",uuid=~\"{}\"", tsdb::quote_text(ids))) +
      cluster_matcher;
  const std::string_view by = whole ? "" : " by (uuid)";
  std::string query = labelled(sum_of(kGrown, matchers, by, false), "all");
  if (gpus) {
    query += " or " + labelled(sum_of(kGrown, matchers, by, true), "gpus");
  }
  if (!whole) {
    query += " or " + labelled(sum_of(kGrownFromZero, matchers, by, false), "all_of_new");
    if (gpus) {
      query += " or " + labelled(sum_of(kGrownFromZero, matchers, by, true), "gpus_of_new");
    }
  }
  return query;
}

Result<EnergyByUnit> read_energy(const ClusterTsdb& tsdb,
                                 const EnergyRequest& request,
                                 const Clock& clock) {
  const std::string cluster =
      tsdb.cluster_label.empty()
          ? ""
          : fmt::format(",{}=\"{}\"", tsdb.cluster_label, tsdb::quote_text(request.cluster_id));
  const std::vector<std::int64_t>& hours = request.hours;
  EnergyByUnit energy;
  const auto ask = [&](const std::string& ids, std::int64_t first, std::int64_t last) -> Result<> {
    if (clock.steady_now() >= request.until) {
      return fail(ErrorCode::kTimeout, "no time is left to read the energy of units by hour");
    }
    CEEMS_TRY(answer, tsdb.client->query_range(energy_query(ids, cluster, request.gpus),
                                               first + kUsageHourMs, last + kUsageHourMs,
                                               std::chrono::milliseconds(kUsageHourMs)));
    add_answer(answer, hours, energy);
    return {};
  };
  for (std::size_t begin = 0; begin < hours.size(); begin += kHoursPerQuery) {
    const std::int64_t first = hours[begin];
    const std::int64_t last = hours[std::min(begin + kHoursPerQuery, hours.size()) - 1];
    if (request.whole_cluster) {
      CEEMS_TRY(ask("", first, last));
      continue;
    }
    const std::vector<std::string> ids = ids_alive(request.units, first, last + kUsageHourMs);
    for (std::size_t i = 0; i < ids.size(); i += kUnitsPerQuery) {
      const auto some = std::span(ids).subspan(i, std::min(kUnitsPerQuery, ids.size() - i));
      CEEMS_TRY(ask(tsdb::exact_regex({some.begin(), some.end()}), first, last));
    }
  }
  return energy;
}

std::vector<UnitEnergy> energy_of_units(const std::vector<HourUnit>& units,
                                        const std::vector<HourLife>& others,
                                        const std::vector<std::int64_t>& hours,
                                        const EnergyByUnit& energy) {
  const auto size = hours.size();
  std::vector<UnitEnergy> all(units.size(), {.all = std::vector<std::optional<double>>(size),
                                             .gpus = std::vector<std::optional<double>>(size)});
  for (const auto& [uuid, lives] : lives_of(units, others)) {
    const auto measured = energy.find(uuid);
    if (measured == energy.end()) {
      continue;
    }
    for (std::size_t i = 0; i < std::min(size, measured->second.size()); ++i) {
      const auto place = unit_of_hour(lives, units, hours[i]);
      if (!place) {
        continue;
      }
      const HourEnergy& hour = measured->second[i];
      const bool starts = units[*place].started_ms >= hours[i] - kHourSlackMs;
      all[*place].all[i] = starts && hour.all_of_new ? hour.all_of_new : hour.all;
      all[*place].gpus[i] = starts && hour.gpus_of_new ? hour.gpus_of_new : hour.gpus;
    }
  }
  return all;
}

}  // namespace ceems::api
