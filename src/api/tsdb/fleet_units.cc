// Units that do nothing, and series for prices and bills.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "api/tsdb/fleet.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "tsdb/answer.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kTwoDaysMs = 48LL * 3600 * kSecondMs;
constexpr std::size_t kMaxIdle = 500;
constexpr std::size_t kMaxUnitSeries = 1000;
constexpr std::size_t kMaxKept = 32;
constexpr std::size_t kMaxKeptRuns = 1000;

/// Matchers of the cluster's series, each after a comma.
std::string and_cluster(const ClusterTsdb& tsdb, const std::string& cluster_id) {
  return tsdb.cluster_label.empty()
             ? ""
             : fmt::format(",{}=\"{}\"", tsdb.cluster_label, tsdb::quote_text(cluster_id));
}

/// A unit that computes for a second of every minute is idle for 98.3 % of the time.
constexpr double kIdleShare = 0.99;

/// `{0}` stands for the matchers of the cluster, `{1}` for kIdleShare.
constexpr std::string_view kIdleNow =
    "(min by (uuid) (rate(ceems_compute_unit_idle_seconds_total{{uuid!=\"\"{0}}}[1h])) >= {1}"
    " and on (uuid) (count by (uuid) (ceems_compute_unit_idle_seconds_total{{uuid!=\"\"{0}}})"
    " >= on (uuid) count by (uuid) (ceems_compute_unit_cpus{{uuid!=\"\"{0}}})))"
    " unless on (uuid) (sum by (uuid)"
    " (rate(ceems_compute_unit_energy_joules_total{{domain=\"node\"{0}}}[1h]))"
    " > on (uuid) 1.1 * sum by (uuid)"
    " (rate(ceems_compute_unit_idle_energy_joules_total{{domain=\"node\"{0}}}[1h])))";
/// When it was last busy.
constexpr std::string_view kLastBusy =
    "max by (uuid) (max_over_time(timestamp(rate("
    "ceems_compute_unit_idle_seconds_total{{uuid=~\"{2}\"{0}}}[5m]) < {1})[2d:5m]))";
constexpr std::string_view kWatts =
    "sum by (uuid) (rate(ceems_compute_unit_energy_joules_total{{domain=\"node\",uuid=~\"{2}\""
    "{0}}}[10m]))";

}  // namespace

Result<std::vector<IdleUnit>> Fleet::ask_idle(const ClusterTsdb& tsdb,
                                              const std::string& cluster_id) const {
  const std::int64_t now = clock_->now_ms();
  const std::string only = and_cluster(tsdb, cluster_id);
  std::map<std::string, IdleUnit> units;
  std::string ids;
  for (const std::string_view text : {kIdleNow, kLastBusy, kWatts}) {
    CEEMS_TRY(answer,
              tsdb.client->query({.query = fmt::format(fmt::runtime(text), only, kIdleShare, ids),
                                  .time_ms = now,
                                  .timeout = kFleetTimeout,
                                  .max_series = kMaxUnitSeries}));
    for (const tsdb::Series& series : answer.series) {
      const std::string uuid(series.labels.get("uuid"));
      if (uuid.empty() || series.samples.empty() || !std::isfinite(series.samples.front().value)) {
        continue;
      }
      const double value = series.samples.front().value;
      if (text == kIdleNow && units.size() < kMaxIdle) {
        units.emplace(uuid, IdleUnit{.uuid = uuid, .since_ms = now - kTwoDaysMs});
      } else if (const auto found = units.find(uuid); found != units.end()) {
        if (text == kLastBusy) {
          found->second.since_ms = std::clamp(tsdb::moment_ms(value), now - kTwoDaysMs, now);
        } else if (text == kWatts) {
          found->second.watts = value;
        }
      }
    }
    if (text == kIdleNow) {
      std::vector<std::string> all;
      all.reserve(units.size());
      for (const auto& [uuid, unit] : units) {
        all.push_back(uuid);
      }
      if (all.empty()) {
        break;
      }
      ids = tsdb::quote_text(tsdb::exact_regex(all));
    }
  }
  std::vector<IdleUnit> list;
  list.reserve(units.size());
  for (auto& [uuid, unit] : units) {
    list.push_back(std::move(unit));
  }
  return list;
}

Result<std::vector<IdleUnit>> Fleet::idle_units(const std::string& cluster_id) {
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  const auto now = clock_->steady_now();
  {
    const MutexLock lock(mutex_);
    const auto found = idle_.find(cluster_id);
    if (found != idle_.end() && now < found->second.until) {
      return found->second.units;
    }
  }
  auto units = ask_idle(*tsdb, cluster_id);
  if (units) {
    const MutexLock lock(mutex_);
    idle_[cluster_id] = {.until = now + kFleetKept, .units = *units};
  }
  return units;
}

Result<std::vector<fleet::Straggler>> Fleet::stragglers(const std::string& cluster_id,
                                                        const StragglerRequest& request) {
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}", cluster_id, request.uuid, request.started_ms, request.running);
  const auto now = clock_->steady_now();
  {
    const MutexLock lock(mutex_);
    const auto found = stragglers_.find(key);
    if (found != stragglers_.end() && now < found->second.until) {
      return found->second.rows;
    }
  }
  auto rows = read_stragglers(*tsdb, cluster_id, request);
  if (rows) {
    const MutexLock lock(mutex_);
    if (stragglers_.size() >= kMaxKeptRuns) {
      stragglers_.clear();
    }
    stragglers_[key] = {.until = now + kFleetKept, .rows = *rows};
  }
  return rows;
}

Result<std::shared_ptr<const std::vector<StragglersOfUnit>>> Fleet::all_stragglers(
    const std::string& cluster_id) {
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  const auto now = clock_->steady_now();
  {
    const MutexLock lock(mutex_);
    const auto found = all_stragglers_.find(cluster_id);
    if (found != all_stragglers_.end() && now < found->second.until) {
      return found->second.units;
    }
  }
  CEEMS_TRY(read, read_all_stragglers(*tsdb, cluster_id, clock_->now_ms()));
  auto units = std::make_shared<const std::vector<StragglersOfUnit>>(std::move(read));
  const MutexLock lock(mutex_);
  all_stragglers_[cluster_id] = {.until = now + kAllStragglersKept, .units = units};
  return units;
}

Result<std::shared_ptr<const EnergyByUnit>> Fleet::energy_by_hour(const EnergyRequest& request) {
  CEEMS_TRY(tsdb, tsdb_of(request.cluster_id));
  const bool keep = request.whole_cluster && !request.hours.empty();
  const std::string key =
      keep ? fmt::format("{}\n{}\n{}\n{}", request.cluster_id, request.hours.front(),
                         request.hours.size(), request.gpus)
           : "";
  const auto now = clock_->steady_now();
  if (keep) {
    const MutexLock lock(mutex_);
    const auto found = energy_.find(key);
    if (found != energy_.end() && now < found->second.until) {
      return found->second.energy;
    }
  }
  CEEMS_TRY(read, read_energy(*tsdb, request, *clock_));
  auto energy = std::make_shared<const EnergyByUnit>(std::move(read));
  if (keep) {
    const MutexLock lock(mutex_);
    if (energy_.size() >= kMaxKept) {
      energy_.clear();
    }
    energy_[key] = {.until = now + kFleetKept, .energy = energy};
  }
  return energy;
}

Result<Points> Fleet::values(const std::string& cluster_id,
                             const std::string& query,
                             std::int64_t from_ms,
                             std::int64_t to_ms,
                             milliseconds step) {
  const bool any = cluster_id.empty() && !tsdbs_->empty();
  CEEMS_TRY(tsdb, tsdb_of(any ? tsdbs_->begin()->first : cluster_id));
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}\n{}", cluster_id, query, from_ms, to_ms, step.count());
  const auto now = clock_->steady_now();
  {
    const MutexLock lock(mutex_);
    const auto found = points_.find(key);
    if (found != points_.end() && now < found->second.until) {
      return found->second.points;
    }
  }
  CEEMS_TRY(answer, tsdb->client->query_range(query, from_ms, to_ms, step));
  std::map<std::int64_t, double> sums;
  for (const tsdb::Series& series : answer.series) {
    for (const tsdb::Sample& sample : series.samples) {
      if (std::isfinite(sample.value)) {
        sums[sample.time_ms] += sample.value;
      }
    }
  }
  Points points(sums.begin(), sums.end());
  const MutexLock lock(mutex_);
  if (points_.size() >= kMaxKept) {
    points_.clear();
  }
  points_[key] = {.until = now + kFleetKept, .points = points};
  return points;
}

}  // namespace ceems::api
