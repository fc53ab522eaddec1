// Usage over hours: energy from the TSDB, reservations from the database.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "access/lists.h"
#include "api/accounting/accounting.h"
#include "api/answer/numbers.h"
#include "api/endpoints/own_projects.h"
#include "api/endpoints/usage_series.h"
#include "api/request/list_params.h"
#include "api/tsdb/fleet.h"
#include "api/tsdb/hour_energy.h"
#include "base/log.h"

namespace ceems::api {
namespace {

/// Of which energy is read one by one.
constexpr std::size_t kMaxMeasuredUnits = 2000;
/// Of which only the database is asked.
constexpr std::size_t kMaxReservedUnits = 100'000;
constexpr std::size_t kIdsPerQuery = 200;
/// If more ran in adjacent hours without readings, none of these hours is said to be idle.
constexpr std::size_t kMaxUnitsOfGap = 1000;
/// For all queries of the period. The page waits for them.
constexpr std::chrono::seconds kTimeLimit{30};

/// What is read for the request.
struct Plan {
  bool energy = false;
  bool whole_clusters = false;  ///< energy without a list of units
  bool units = false;
};

/// The sums of a group on a cluster in an hour.
struct HourSums {
  bool alive = false;  ///< a unit ran
  std::optional<double> kwh = {}, gpu_kwh = {}, core_hours = {}, gpu_hours = {};
  double units = 0;  ///< that started
};
using Group = std::vector<HourSums>;                        ///< by hour
using Cluster = std::map<std::string, Group, std::less<>>;  ///< by name of the group

Plan plan_of(const Services& services, const Call& call, const UsageRequest& request) {
  const auto& prices = services.accounting->options().prices;
  const bool cost = request.wants(UsageField::kCost) && prices.any();
  Plan plan;
  plan.energy = request.wants(UsageField::kKwh) || (cost && !prices.rules.empty());
  plan.whole_clusters = plan.energy && call.admin_route && request.by != UsageGroups::kProject &&
                        request.by != UsageGroups::kUser &&
                        split_lists(call.params.projects).empty() &&
                        split_lists(call.params.users).empty();
  plan.units = !plan.whole_clusters || request.wants(UsageField::kCoreHours) ||
               request.wants(UsageField::kGpuHours) || request.wants(UsageField::kUnits) ||
               (cost && (prices.core_hour || prices.gpu_hour));
  return plan;
}

/// Where the caller may see usage: also own usage in projects that have no members, or others.
std::set<std::string> projects_with_usage(const Services& services, const Call& call) {
  std::set<std::string> projects;
  const auto project = store::find_field(store::usage_fields(), "project");
  if (!project) {
    return projects;
  }
  QueryTimer timer(*services.metrics, Query::kUsage);
  const std::array fields{*project};
  const auto rows = timer.run([&] {
    return services.reader->usage(
        {.members = access::own_projects(call.identity, access::parse_part(call.params.scope))},
        fields);
  });
  while (rows) {
    const auto row = timer.run([&] { return (*rows)->next(); });
    if (!row || !*row) {
      break;
    }
    projects.emplace((*rows)->text(0));
  }
  return projects;
}

/// Which units the caller may have in their sums. Nothing if there can be none.
std::optional<store::FactFilter> filter_of(const Services& services, const Call& call) {
  store::FactFilter filter;
  filter.projects = split_lists(call.params.projects);
  filter.clusters = split_lists(call.params.clusters);
  filter.users = split_lists(call.params.users);
  if (call.admin_route) {
    access::list_everybodys(call.identity, {}, filter);
    return filter;
  }
  access::list_projects(call.identity, access::parse_part(call.params.scope), filter);
  // The condition of members decides; the names are for the index.
  std::set<std::string> own;
  for (const auto& [cluster, project] : own_projects(services, call)) {
    own.insert(project);
  }
  own.merge(projects_with_usage(services, call));
  if (filter.projects.empty()) {
    filter.projects.assign(own.begin(), own.end());
  } else {
    std::erase_if(filter.projects, [&own](const auto& project) { return !own.contains(project); });
  }
  return filter.projects.empty() ? std::nullopt : std::optional(std::move(filter));
}

/// Units that ran from the one time to the other, or seem to, but not more than `limit`.
Result<std::vector<HourUnit>> units_between(const Services& services,
                                            store::FactFilter filter,
                                            std::int64_t from_ms,
                                            std::int64_t end_ms,
                                            std::size_t limit) {
  using store::Fact;
  filter.ended = store::TimeRange{from_ms, std::max(services.now_ms(), end_ms) + 24 * kUsageHourMs};
  filter.running = true;
  filter.ranges = {{.fact = Fact::kStarted, .low = 1, .high = end_ms - 1}};
  const store::FactListQuery query{
      .filter = std::move(filter),
      .columns = {Fact::kClusterId, Fact::kUuid, Fact::kUser, Fact::kProject, Fact::kCreated,
                  Fact::kStarted, Fact::kEnded, Fact::kCpus, Fact::kGpus},
      .limit = limit};
  std::vector<HourUnit> units;
  QueryTimer timer(*services.metrics, Query::kUnits);
  CEEMS_TRY(rows, timer.run([&] { return services.reader->unit_facts(query); }));
  while (true) {
    CEEMS_TRY(row, timer.run([&] { return rows->next(); }));
    if (!row) {
      return units;
    }
    timer.count_row();
    const store::Cursor& cursor = *rows;
    units.push_back({.cluster = std::string(cursor.text(0)),
                     .uuid = std::string(cursor.text(1)),
                     .user = std::string(cursor.text(2)),
                     .project = std::string(cursor.text(3)),
                     .created_ms = cursor.integer(4),
                     .started_ms = cursor.integer(5),
                     .ended_ms = cursor.integer(6),
                     .cpus = value_of(store::FactKind::kMilli, cursor.integer(7)),
                     .gpus = value_of(store::FactKind::kMilli, cursor.integer(8))});
  }
}

Result<std::vector<HourUnit>> read_units(const Services& services,
                                         const Call& call,
                                         const std::vector<std::int64_t>& hours,
                                         bool measured) {
  const std::size_t limit = measured ? kMaxMeasuredUnits : kMaxReservedUnits;
  auto filter = filter_of(services, call);
  if (!filter) {
    return std::vector<HourUnit>();
  }
  auto units = units_between(services, *std::move(filter), hours.front(),
                             hours.back() + kUsageHourMs, limit + 1);
  if (units && units->size() > limit) {
    return fail(ErrorCode::kInvalidArgument,
                "more than {} units: choose a shorter period or narrow by project, user or "
                "cluster_id",
                limit);
  }
  return units;
}

/// From when to when the database has all units of a cluster: the end of the first one, and of the
/// last window that was read.
Result<store::TimeRange> known_time(const Services& services,
                                    store::FactFilter filter,
                                    std::int64_t until_ms) {
  const std::string cluster = filter.clusters.front();
  filter.ended = store::TimeRange{1, until_ms};
  const store::FactListQuery query{.filter = std::move(filter),
                                   .columns = {store::Fact::kEnded},
                                   .descending = false,
                                   .limit = 1};
  QueryTimer timer(*services.metrics, Query::kUnits);
  CEEMS_TRY(complete, timer.run([&] { return services.reader->facts_complete(); }));
  CEEMS_TRY(marks, timer.run([&] { return services.reader->watermarks(); }));
  CEEMS_TRY(rows, timer.run([&] { return services.reader->unit_facts(query); }));
  CEEMS_TRY(row, timer.run([&] { return rows->next(); }));
  const auto mark = marks.find(cluster);
  if (!complete || !row || mark == marks.end()) {
    return store::TimeRange{0, 0};
  }
  timer.count_row();
  return store::TimeRange{rows->integer(0), mark->second};
}

/// Which hours have no energy because no unit ran on the cluster: those in which the database would
/// know one.
Result<std::vector<bool>> idle_hours(const Services& services,
                                     const Call& call,
                                     const std::string& cluster,
                                     const std::vector<std::int64_t>& hours,
                                     const std::vector<std::optional<double>>& energy) {
  std::vector<bool> idle(hours.size());
  if (std::ranges::all_of(energy, [](const auto& kwh) { return kwh.has_value(); })) {
    return idle;
  }
  store::FactFilter filter;
  access::list_everybodys(call.identity, {}, filter);
  filter.clusters = {cluster};
  const std::int64_t now = services.now_ms();
  CEEMS_TRY(known, known_time(services, filter, now));
  for (std::size_t i = 0; i < hours.size(); ++i) {
    idle[i] = !energy[i] && hours[i] >= known.from_ms &&
              hours[i] + kUsageHourMs <= std::min(known.to_ms, now);
  }
  for (std::size_t begin = 0; begin < hours.size(); ++begin) {
    std::size_t end = begin;
    while (end < hours.size() && idle[end]) {
      ++end;
    }
    if (begin == end) {
      continue;
    }
    CEEMS_TRY(units, units_between(services, filter, hours[begin], hours[end - 1] + kUsageHourMs,
                                   kMaxUnitsOfGap + 1));
    for (; begin < end; ++begin) {
      idle[begin] =
          units.size() <= kMaxUnitsOfGap && std::ranges::all_of(units, [&](const HourUnit& unit) {
            return share_of_hour(unit, hours[begin], now) == 0;
          });
    }
  }
  return idle;
}

/// The lives of other units with the ids of these units, on one cluster.
Result<std::vector<HourLife>> other_lives(const Services& services,
                                          const std::string& cluster,
                                          const std::vector<HourUnit>& units) {
  using LifeKey = std::tuple<std::string, std::int64_t, std::int64_t>;
  std::multiset<LifeKey> known;
  std::set<std::string> ids;
  for (const HourUnit& unit : units) {
    known.emplace(unit.uuid, unit.created_ms, unit.started_ms);
    ids.insert(unit.uuid);
  }
  const std::vector<std::string> all(ids.begin(), ids.end());
  std::vector<HourLife> others;
  QueryTimer timer(*services.metrics, Query::kUnits);
  for (std::size_t i = 0; i < all.size(); i += kIdsPerQuery) {
    const std::vector<std::string> some(
        all.begin() + static_cast<std::ptrdiff_t>(i),
        all.begin() + static_cast<std::ptrdiff_t>(std::min(i + kIdsPerQuery, all.size())));
    CEEMS_TRY(lives, timer.run([&] { return services.reader->unit_lives({}, cluster, some); }));
    for (const store::UnitLife& life : lives) {
      const auto found = known.find(LifeKey(life.uuid, life.created_ms, life.started_ms));
      if (found != known.end()) {
        known.erase(found);
      } else {
        others.push_back(
            {.uuid = life.uuid, .started_ms = life.started_ms, .ended_ms = life.ended_ms});
      }
    }
  }
  return others;
}

std::string group_of(const HourUnit& unit, UsageGroups by) {
  switch (by) {
    case UsageGroups::kProject:
      return unit.project;
    case UsageGroups::kUser:
      return unit.user;
    case UsageGroups::kCluster:
      return unit.cluster;
    default:
      return std::string(kAllUsage);
  }
}

/// Adds up what units reserved, and used.
class Adder {
 public:
  Adder(const Services& services,
        const UsageRequest& request,
        const std::vector<std::int64_t>& hours)
      : services_(services), request_(request), hours_(hours), now_ms_(services.now_ms()) {}

  Group& group(const std::string& cluster, const std::string& name) {
    Group& group = clusters_[cluster][name];
    group.resize(hours_.size());
    return group;
  }

  void add_unit(const HourUnit& unit) {
    Group& sums = group(unit.cluster, group_of(unit, request_.by));
    for (std::size_t i = 0; i < hours_.size(); ++i) {
      HourSums& hour = sums[i];
      const double share = share_of_hour(unit, hours_[i], now_ms_);
      if (share > 0) {
        hour.alive = true;
        add_known(hour.core_hours, unit.cpus ? std::optional(*unit.cpus * share) : std::nullopt);
        // A unit of which no GPUs are known has none.
        add_known(hour.gpu_hours, unit.gpus.value_or(0) * share);
      }
      if (unit.started_ms >= hours_[i] && unit.started_ms < hours_[i] + kUsageHourMs) {
        hour.units += 1;
      }
    }
  }

  void add_energy(Group& sums,
                  const std::vector<std::optional<double>>& all,
                  const std::vector<std::optional<double>>& gpus) const {
    for (std::size_t i = 0; i < hours_.size(); ++i) {
      add_known(sums[i].kwh, all.at(i));
      add_known(sums[i].gpu_kwh, gpus.at(i));
    }
  }

  /// The energy of a cluster without a list of its units. `idle` are the hours without any.
  void add_cluster(const std::string& cluster,
                   const std::vector<std::optional<double>>& all,
                   const std::vector<std::optional<double>>& gpus,
                   const std::vector<bool>& idle) {
    const std::string name = group_of({.cluster = cluster}, request_.by);
    auto& hours = idle_.try_emplace(name, hours_.size(), true).first->second;
    bool something = false;
    for (std::size_t i = 0; i < hours.size(); ++i) {
      hours[i] = hours[i] && idle.at(i);
      something = something || idle[i] || all.at(i);
    }
    if (something) {
      add_energy(group(cluster, name), all, gpus);
    }
  }

  /// `whole_clusters`: the energy includes that of units that are not known, so it is 0 only in
  /// hours that are idle.
  [[nodiscard]] UsageSums take(bool whole_clusters) const {
    UsageSums sums{.times = hours_, .groups = {}};
    Costs costs = services_.accounting->costs();
    std::map<std::string, std::vector<bool>> alive;
    for (const auto& [cluster, groups] : clusters_) {
      if (request_.wants(UsageField::kCost) && !hours_.empty()) {
        // Of the whole period, so that a series of prices is read once.
        static_cast<void>(costs.price(cluster, hours_.front(), hour_end(hours_.size() - 1)));
      }
      for (const auto& [name, group] : groups) {
        auto& ran = alive[name];
        ran.resize(hours_.size());
        for (std::size_t i = 0; i < hours_.size() && hours_[i] < now_ms_; ++i) {
          ran[i] = ran[i] || group[i].alive;
          add_hour(sums, name, i, group[i]);
          if (request_.wants(UsageField::kCost)) {
            sums.add_to(name, i, UsageField::kCost, cost_of(costs, cluster, i, group[i]));
          }
        }
      }
    }
    for (const auto& [name, ran] : alive) {
      std::vector<bool> without(hours_.size());  // energy
      for (std::size_t i = 0; i < hours_.size(); ++i) {
        without[i] = !whole_clusters && !ran[i];
      }
      const bool parts = request_.by == UsageGroups::kComponent;
      if (const auto idle = idle_.find(name); idle != idle_.end()) {
        without = idle->second;
        if (parts && std::ranges::find(without, true) != without.end()) {
          static_cast<void>(sums.at("cpu", 0, UsageField::kKwh));  // if nothing ran at all
        }
      }
      for (const std::string& group :
           parts ? std::vector<std::string>{"cpu", "gpu"} : std::vector{name}) {
        if (sums.groups.contains(group)) {
          fill_with_zeros(sums, group, ran, without);
        }
      }
    }
    return sums;
  }

 private:
  [[nodiscard]] std::int64_t hour_end(std::size_t hour) const {
    return std::max(std::min(hours_[hour] + kUsageHourMs, now_ms_), hours_.front() + 1);
  }

  void add_hour(UsageSums& sums,
                const std::string& name,
                std::size_t hour,
                const HourSums& values) const {
    if (request_.by == UsageGroups::kComponent) {
      if (values.kwh) {
        const double gpus = std::min(values.gpu_kwh.value_or(0), *values.kwh);
        sums.add_to("cpu", hour, UsageField::kKwh, *values.kwh - gpus);
      }
      if (values.gpu_kwh) {
        sums.add_to("gpu", hour, UsageField::kKwh, values.gpu_kwh);
      }
      return;
    }
    sums.add_to(name, hour, UsageField::kKwh, values.kwh);
    sums.add_to(name, hour, UsageField::kCoreHours, values.core_hours);
    sums.add_to(name, hour, UsageField::kGpuHours, values.gpu_hours);
    sums.add_to(name, hour, UsageField::kUnits, values.units);
  }

  [[nodiscard]] std::optional<double> cost_of(Costs& costs,
                                              const std::string& cluster,
                                              std::size_t hour,
                                              const HourSums& values) const {
    const auto& prices = services_.accounting->options().prices;
    const bool used = values.alive || values.kwh;
    const bool unknown = values.alive && prices.core_hour && !values.core_hours;
    if (!used || unknown) {
      return std::nullopt;
    }
    return costs.of(cluster, hours_[hour], hour_end(hour), values.kwh,
                    values.core_hours.value_or(0), values.gpu_hours.value_or(0));
  }

  /// `ran`: hours in which a unit of the group ran. `without`: those in which it used no energy.
  void fill_with_zeros(UsageSums& sums,
                       const std::string& name,
                       const std::vector<bool>& ran,
                       const std::vector<bool>& without) const {
    for (std::size_t i = 0; i < hours_.size() && hours_[i] < now_ms_; ++i) {
      for (const UsageField field :
           {UsageField::kKwh, UsageField::kCost, UsageField::kCoreHours, UsageField::kGpuHours}) {
        const bool energy = field == UsageField::kKwh || field == UsageField::kCost;
        const bool zero = energy ? without[i] : !ran[i];
        const bool priced = field != UsageField::kCost || services_.accounting->priced();
        auto& value = sums.at(name, i, field);
        if (!value && zero && priced) {
          value = 0;
        }
      }
    }
  }

  const Services& services_;
  const UsageRequest& request_;
  const std::vector<std::int64_t>& hours_;
  std::int64_t now_ms_;
  std::map<std::string, Cluster> clusters_;
  std::map<std::string, std::vector<bool>> idle_;  ///< hours of groups on all clusters
};

/// Why a cluster has no energy.
std::string_view reason_of(const Error& error) {
  return error.code == ErrorCode::kNotFound ? kNoTsdb : kUnavailable;
}

Result<std::shared_ptr<const EnergyByUnit>> ask(const Services& services, EnergyRequest request) {
  if (services.fleet == nullptr) {
    return fail(ErrorCode::kNotFound, "no TSDB");
  }
  // What has not begun was not measured.
  const std::int64_t now = services.now_ms();
  std::erase_if(request.hours, [now](std::int64_t hour) { return hour >= now; });
  return services.fleet->energy_by_hour(request);
}

Result<> add_energy_of_units(const Services& services,
                             const UsageRequest& request,
                             const std::vector<std::int64_t>& hours,
                             const std::vector<HourUnit>& units,
                             Clock::SteadyTime until,
                             Adder& adder,
                             std::vector<MissingCluster>& missing) {
  std::map<std::string, std::vector<HourUnit>> clusters;
  for (const HourUnit& unit : units) {
    clusters[unit.cluster].push_back(unit);
  }
  for (const auto& [cluster, own] : clusters) {
    CEEMS_TRY(others, other_lives(services, cluster, own));
    const auto energy = ask(services, {.cluster_id = cluster,
                                       .hours = hours,
                                       .gpus = request.by == UsageGroups::kComponent,
                                       .units = own,
                                       .until = until});
    if (!energy) {
      missing.push_back({cluster, reason_of(energy.error())});
      continue;
    }
    const auto of_units = energy_of_units(own, others, hours, **energy);
    for (std::size_t i = 0; i < own.size(); ++i) {
      adder.add_energy(adder.group(cluster, group_of(own[i], request.by)), of_units[i].all,
                       of_units[i].gpus);
    }
  }
  return {};
}

void add_energy_of_clusters(const Services& services,
                            const Call& call,
                            const UsageRequest& request,
                            const std::vector<std::int64_t>& hours,
                            Clock::SteadyTime until,
                            Adder& adder,
                            std::vector<MissingCluster>& missing) {
  const auto wanted = split_lists(call.params.clusters);
  for (const SiteCluster& cluster : services.site->clusters) {
    if (!wanted.empty() && std::ranges::find(wanted, cluster.id) == wanted.end()) {
      continue;
    }
    const auto energy = ask(services, {.cluster_id = cluster.id,
                                       .hours = hours,
                                       .gpus = request.by == UsageGroups::kComponent,
                                       .whole_cluster = true,
                                       .until = until});
    if (!energy) {
      missing.push_back({cluster.id, reason_of(energy.error())});
      continue;
    }
    std::vector<std::optional<double>> all(hours.size());
    std::vector<std::optional<double>> gpus(hours.size());
    if (const auto found = (*energy)->find(""); found != (*energy)->end()) {
      for (std::size_t i = 0; i < std::min(hours.size(), found->second.size()); ++i) {
        all[i] = found->second[i].all;
        gpus[i] = found->second[i].gpus;
      }
    }
    const auto idle = idle_hours(services, call, cluster.id, hours, all);
    if (!idle) {
      log::warn("hours in which nothing ran are not known",
                {{"cluster", cluster.id}, {"err", idle.error().message}});
    }
    adder.add_cluster(cluster.id, all, gpus, idle.value_or(std::vector<bool>(hours.size())));
  }
}

}  // namespace

Result<UsageSums> read_usage_hours(const Services& services,
                                   const Call& call,
                                   const UsageRequest& request,
                                   const std::vector<std::int64_t>& hours) {
  if (hours.empty()) {
    return UsageSums{};
  }
  const Plan plan = plan_of(services, call, request);
  const auto until = services.clock->steady_now() + kTimeLimit;
  Adder adder(services, request, hours);
  std::vector<MissingCluster> missing;
  bool partial = false;
  if (plan.units) {
    const auto complete = services.reader->facts_complete();
    const bool measured = plan.energy && !plan.whole_clusters;
    const auto units = read_units(services, call, hours, measured);
    if (!complete || !units) {
      return fail(!complete ? complete.error() : units.error());
    }
    partial = !*complete;
    for (const HourUnit& unit : *units) {
      adder.add_unit(unit);
    }
    if (measured) {
      CEEMS_TRY(add_energy_of_units(services, request, hours, *units, until, adder, missing));
    }
  }
  if (plan.whole_clusters) {
    add_energy_of_clusters(services, call, request, hours, until, adder, missing);
  }
  UsageSums sums = adder.take(plan.whole_clusters);
  sums.missing = std::move(missing);
  sums.partial = partial;
  return sums;
}

}  // namespace ceems::api
