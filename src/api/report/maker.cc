#include "api/report/maker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/accounting/accounting.h"
#include "api/answer/numbers.h"
#include "api/report/facts.h"
#include "api/report/flavors.h"
#include "api/report/json_object.h"
#include "api/report/month.h"
#include "api/report/unit_nodes.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "report/family.h"
#include "store/facts.h"
#include "store/fields.h"
#include "store/json.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using model::Metric;

constexpr std::array kMetrics{Metric::kAvgCpuUsage,
                              Metric::kAvgCpuMemUsage,
                              Metric::kTotalCpuEnergyUsageKwh,
                              Metric::kTotalCpuEmissionsGms,
                              Metric::kAvgGpuUsage,
                              Metric::kAvgGpuMemUsage,
                              Metric::kTotalGpuEnergyUsageKwh,
                              Metric::kTotalGpuEmissionsGms,
                              Metric::kTotalIoWriteStats,
                              Metric::kTotalIoReadStats};
constexpr std::array<std::string_view, 11> kTexts{
    "cluster_id",        "resource_manager", "uuid",  "name",       "project",
    "username",          "started_at",       "state", "allocation", "tags",
    "total_time_seconds"};
constexpr std::array<std::string_view, 3> kTimes{"created_at_ts", "started_at_ts", "ended_at_ts"};

/// How many runs of the family are looked at: completed, or out of memory.
constexpr std::size_t kMaxCandidates = 100;
constexpr std::size_t kMaxEarlierAtOnce = 100;  // runs in a query
constexpr std::size_t kMaxEarlier = 8;

/// The rule that looks for a smaller flavor; its limit `margin` is the share that is kept to spare.
constexpr std::string_view kFlavorRule = "flavor-large";
constexpr std::string_view kFlavorFact = "flavor.name";
/// The last days of a server that runs, by which it is judged: two weeks, as loads follow the week.
constexpr std::int64_t kRecentMs = std::int64_t{14} * 24 * 3600'000;

std::size_t field_named(std::string_view name) {
  return store::find_field(store::unit_fields(), name).value_or(0);
}

/// The fields that read_stored_units() reads, in the order in which unit_of() takes them.
const std::vector<std::size_t>& stored_fields() {
  static const std::vector<std::size_t> kFields = [] {
    std::vector<std::size_t> fields;
    fields.reserve(kTexts.size() + kTimes.size());
    for (const std::string_view name : kTexts) {
      fields.push_back(field_named(name));
    }
    for (const std::string_view name : kTimes) {
      fields.push_back(field_named(name));
    }
    // The metrics follow total_time_seconds in the order of model::Metric.
    const std::size_t first = field_named("avg_cpu_usage");
    for (const Metric metric : kMetrics) {
      fields.push_back(first + static_cast<std::size_t>(metric));
    }
    return fields;
  }();
  return kFields;
}

StoredUnit unit_of(const store::Cursor& row) {
  StoredUnit stored;
  model::Unit& unit = stored.unit;
  std::size_t column = 0;
  for (std::string* text :
       {&unit.cluster_id, &unit.resource_manager, &unit.uuid, &unit.name, &unit.project,
        &unit.username, &unit.started_at, &unit.state, &unit.allocation, &unit.tags}) {
    *text = row.text(column++);
  }
  unit.total_time_seconds =
      store::parse_metric_map(row.text(column++)).value_or(model::MetricMap{});
  for (std::int64_t* time : {&unit.created_at_ts, &unit.started_at_ts, &unit.ended_at_ts}) {
    *time = row.integer(column++);
  }
  for (const Metric metric : kMetrics) {
    unit.metric(metric) = store::parse_metric_map(row.text(column++)).value_or(model::MetricMap{});
  }
  return stored;
}

/// Whether the rule is one that judges servers while they run.
bool needs_flavor(const advice::RuleSet& rules, std::string_view id) {
  const advice::Rule* const rule = rules.find(id);
  return rule != nullptr && std::ranges::find(rule->needs, kFlavorFact) != rule->needs.end();
}

}  // namespace

std::optional<double> StoredUnit::allocated(std::string_view name) const {
  const json::object all = object_of(unit.allocation);
  const auto* const value = all.if_contains(json::string_view(name.data(), name.size()));
  if (value == nullptr || !value->is_number()) {
    return std::nullopt;
  }
  const double number = value->to_number<double>();
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

std::string StoredUnit::tag(std::string_view name) const {
  const json::object all = object_of(unit.tags);
  const auto* const value = all.if_contains(json::string_view(name.data(), name.size()));
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

std::optional<double> StoredUnit::metric(Metric metric, std::string_view name) const {
  const auto& map = unit.metric(metric);
  const auto found = map.find(name);
  return found == map.end() ? std::nullopt : std::optional(found->second);
}

Result<std::vector<StoredUnit>> read_stored_units(store::Reader& reader,
                                                  const store::UnitQuery& query) {
  CEEMS_TRY(rows, reader.units(query, stored_fields()));
  std::vector<StoredUnit> units;
  while (true) {
    CEEMS_TRY(row, rows->next());
    if (!row) {
      return units;
    }
    units.push_back(unit_of(*rows));
  }
}

struct ReportMaker::Family {
  std::vector<store::FamilyRun> runs;  ///< newest first, without the present one
  std::size_t out_of_memory = 0;
};

/// Units of one cluster, and what is found out about each, at its place.
struct ReportMaker::Batch {
  const std::vector<StoredUnit>& units;
  std::string cluster_id = {};
  std::vector<UnitRun> runs = {};
  std::vector<std::optional<UnitMeasurements>> measured = {};
  std::map<std::size_t, UnitMarks> marks = {};  ///< by place
  std::vector<Family> families = {};
  std::map<store::ReportKey, double> not_used_kwh = {};  ///< where it is known
  std::vector<model::Flavor> flavors = {};               ///< none if no rule needs them
  double flavor_margin = 0;
  std::map<std::string, std::optional<double>, std::less<>> longest_limits = {};  ///< by partition
  std::map<std::size_t, UnitRun> recent_runs = {};  ///< of servers that run, by place
  std::map<std::size_t, UnitMeasurements> recent = {};
  std::optional<Error> missing = {};
};

Result<> ReportMaker::find_families(Batch& batch) const {
  batch.families.resize(batch.units.size());
  for (std::size_t i = 0; i < batch.units.size(); ++i) {
    const std::int64_t ended_ms = batch.runs[i].ended_ms;
    CEEMS_TRY(runs, reader_.family_runs(
                        {.run = key_of(batch.units[i].unit),
                         .ended = {.from_ms = ended_ms - report::kFamilyMs, .to_ms = ended_ms},
                         .limit = kMaxCandidates}));
    Family& family = batch.families[i];
    for (store::FamilyRun& run : runs) {
      if (run.state == "OUT_OF_MEMORY") {
        ++family.out_of_memory;
      } else if (family.runs.size() + 1 < report::kMaxFamily) {
        family.runs.push_back(std::move(run));
      }
    }
  }
  return {};
}

/// What was not used, as the database knows it: the counter of a run that began before it was
/// counted would be too small.
Result<> ReportMaker::read_not_used(Batch& batch) const {
  store::FactListQuery query;
  query.filter.owners.everybody = true;
  query.filter.clusters = {batch.cluster_id};
  for (const StoredUnit& unit : batch.units) {
    query.filter.uuids.push_back(unit.unit.uuid);
  }
  query.columns = {store::Fact::kUuid, store::Fact::kStarted, store::Fact::kNotUsed};
  query.sort = store::Fact::kUuid;
  CEEMS_TRY(rows, reader_.unit_facts(query));
  while (true) {
    CEEMS_TRY(row, rows->next());
    if (!row) {
      return {};
    }
    if (const auto kwh = value_of(store::FactKind::kEnergy, rows->integer(2))) {
      batch.not_used_kwh.emplace(store::ReportKey{.cluster_id = batch.cluster_id,
                                                  .uuid = std::string(rows->text(0)),
                                                  .started_at_ts = rows->integer(1)},
                                 *kwh);
    }
  }
}

Result<> ReportMaker::read_flavors(Batch& batch, const advice::RuleSet& rules) const {
  const advice::Rule* const rule = rules.find(kFlavorRule);
  if (rule == nullptr || !rule->enabled ||
      batch.units.front().unit.resource_manager != "openstack") {
    return {};
  }
  CEEMS_TRY(flavors, reader_.flavors(batch.cluster_id));
  batch.flavors = std::move(flavors);
  const auto margin = rule->limits.find("margin");
  batch.flavor_margin = margin == rule->limits.end() ? 0 : margin->second;
  return {};
}

/// The time limit that the newest jobs of a partition seem not to get beyond: that of the longest
/// ones, if several people asked for exactly as much. The manager does not tell its own.
Result<> ReportMaker::find_longest_limits(Batch& batch) const {
  constexpr std::size_t kAlike = 10;
  for (std::size_t i = 0; i < batch.units.size(); ++i) {
    const StoredUnit& unit = batch.units[i];
    const std::string partition = unit.tag("partition");
    if (unit.unit.state != "TIMEOUT" || partition.empty() ||
        batch.longest_limits.contains(partition)) {
      continue;
    }
    const std::int64_t ended_ms = batch.runs[i].ended_ms;
    const std::string key =
        fmt::format("{}\n{}\n{}", batch.cluster_id, partition, ended_ms / kHourMs);
    if (const auto known = longest_limits_.find(key)) {
      batch.longest_limits[partition] = *known;
      continue;
    }
    store::FactListQuery query;
    query.filter.owners.everybody = true;
    query.filter.names.everybody = true;
    query.filter.clusters = {batch.cluster_id};
    query.filter.partitions = {partition};
    query.filter.ended = store::TimeRange{ended_ms - report::kFamilyMs, ended_ms};
    query.columns = {store::Fact::kTimeLimit, store::Fact::kUser};
    query.sort = store::Fact::kTimeLimit;
    query.limit = kAlike;
    CEEMS_TRY(rows, reader_.unit_facts(query));
    std::set<std::int64_t> limits;
    std::set<std::string, std::less<>> users;
    std::size_t count = 0;
    while (true) {
      CEEMS_TRY(row, rows->next());
      if (!row) {
        break;
      }
      ++count;
      limits.insert(rows->integer(0));
      users.emplace(rows->text(1));
    }
    const auto found = count == kAlike && limits.size() == 1 && users.size() > 1
                           ? std::optional<double>(*limits.begin())
                           : std::nullopt;
    batch.longest_limits[partition] = found;
    longest_limits_.store(key, found);
  }
  return {};
}

/// Runs whose reports are not stored are looked up in the batch, then in the TSDB.
void ReportMaker::measure_earlier(Batch& batch) const {
  std::map<store::ReportKey, RunMeasurements> known;
  for (std::size_t i = 0; i < batch.units.size(); ++i) {
    if (const auto& measured = batch.measured[i]) {
      known.emplace(key_of(batch.units[i].unit), numbers_of(*measured));
    }
  }
  std::map<std::string_view, const store::FamilyRun*> wanted;  // by id, which a query needs once
  for (const Family& family : batch.families) {
    for (const store::FamilyRun& run : family.runs) {
      if (!run.measured && !known.contains(run.key)) {
        wanted.emplace(run.key.uuid, &run);
      }
    }
  }
  std::vector<UnitRun> lives;
  std::vector<const store::FamilyRun*> of;
  const auto ask = [&] {
    const auto numbers = measurements_->measure_runs(batch.cluster_id, lives);
    for (std::size_t i = 0; numbers && i < of.size(); ++i) {
      known.emplace(of[i]->key, (*numbers)[i]);
    }
    if (!numbers && numbers.error().code != ErrorCode::kNotFound) {
      log::warn("cannot read what earlier runs used", {{"err", numbers.error().message}});
      batch.missing = numbers.error();
    }
    lives.clear();
    of.clear();
  };
  for (const auto& [uuid, run] : wanted) {
    if (measurements_ == nullptr || batch.missing) {
      break;
    }
    lives.push_back({.uuid = run->key.uuid,
                     .started_ms = run->key.started_at_ts,
                     .ended_ms = run->ended_at_ts,
                     .until_ms = run->ended_at_ts});
    of.push_back(run);
    if (lives.size() == kMaxEarlierAtOnce) {
      ask();
    }
  }
  if (!lives.empty()) {
    ask();
  }
  for (Family& family : batch.families) {
    for (store::FamilyRun& run : family.runs) {
      const auto found = known.find(run.key);
      if (!run.measured && found != known.end()) {
        run.numbers = found->second;
      }
    }
  }
}

/// Sets up to when samples of each unit may be read.
void ReportMaker::set_ends(Batch& batch, std::int64_t now_ms) const {
  std::vector<std::string> uuids;
  uuids.reserve(batch.units.size());
  for (const StoredUnit& stored : batch.units) {
    const model::Unit& unit = stored.unit;
    const bool ended = unit.ended_at_ts > 0;
    batch.runs.push_back(
        {.uuid = unit.uuid,
         .started_ms = unit.started_at_ts,
         .ended_ms = ended ? unit.ended_at_ts : now_ms,
         .until_ms = ended ? std::min(unit.ended_at_ts + kSettleMs, now_ms) : now_ms});
    uuids.push_back(unit.uuid);
  }
  // An ID may have been given again meanwhile, to somebody else's unit.
  const auto lives = reader_.unit_lives({}, batch.cluster_id, uuids);
  for (UnitRun& run : batch.runs) {
    if (!lives) {
      run.until_ms = run.ended_ms;
      continue;
    }
    for (const store::UnitLife& life : *lives) {
      if (life.uuid == run.uuid && life.started_ms > run.started_ms) {
        run.until_ms = std::min(run.until_ms, life.started_ms - 1);
      }
    }
    run.until_ms = std::max(run.until_ms, run.started_ms);
  }
}

void ReportMaker::measure(Batch& batch) const {
  batch.measured.resize(batch.units.size());
  std::vector<UnitRun> runs;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < batch.runs.size(); ++i) {
    if (batch.runs[i].started_ms > 0 && batch.runs[i].until_ms > batch.runs[i].started_ms) {
      runs.push_back(batch.runs[i]);
      places.push_back(i);
    }
  }
  if (measurements_ == nullptr) {
    batch.missing = Error{ErrorCode::kNotFound, "no TSDB"};
  }
  if (measurements_ == nullptr || runs.empty()) {
    return;
  }
  auto found = measurements_->measure_all(batch.cluster_id, runs);
  if (!found) {
    batch.missing = std::move(found).error();
    if (batch.missing->code != ErrorCode::kNotFound) {
      log::warn("cannot read what units used", {{"err", batch.missing->message}});
    }
    return;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!(*found)[i].nodes.empty()) {
      batch.measured[places[i]] = std::move((*found)[i]);
    }
  }
}

/// Of those that have marks. A report without them is still a report.
void ReportMaker::read_marks(Batch& batch) const {
  std::vector<UnitRun> runs;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < batch.runs.size(); ++i) {
    const bool another = std::ranges::find(runs, batch.runs[i].uuid, &UnitRun::uuid) != runs.end();
    const auto& measured = batch.measured[i];
    if (measured && measured->marked && !another) {
      runs.push_back(batch.runs[i]);
      places.push_back(i);
    }
  }
  if (runs.empty()) {
    return;
  }
  auto found = measurements_->marks(batch.cluster_id, runs);
  if (!found) {
    log::warn("cannot read what units have marked", {{"err", found.error().message}});
    return;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    batch.marks.emplace(places[i], std::move((*found)[i]));
  }
}

Result<UnitMarks> ReportMaker::marks(const std::string& cluster_id, const UnitRun& run) const {
  CEEMS_TRY(found, measurements_->marks(cluster_id, {run}));
  return std::move(found.front());
}

/// Servers run for longer than a TSDB keeps samples. What they need is judged by the last days.
void ReportMaker::measure_recent(Batch& batch) const {
  if (batch.flavors.empty() || measurements_ == nullptr || batch.missing) {
    return;
  }
  std::vector<UnitRun> runs;
  for (std::size_t i = 0; i < batch.units.size(); ++i) {
    UnitRun run = batch.runs[i];
    const std::int64_t since_ms = run.until_ms - kRecentMs;
    if (batch.units[i].unit.ended_at_ts <= 0 && run.started_ms > 0 && run.started_ms < since_ms) {
      run.started_ms = since_ms;
      batch.recent_runs.emplace(i, run);
      runs.push_back(run);
    }
  }
  if (runs.empty()) {
    return;
  }
  auto found = measurements_->measure_all(batch.cluster_id, runs);
  if (!found) {
    log::warn("cannot read what servers used in the last days", {{"err", found.error().message}});
    return;
  }
  std::size_t next = 0;
  for (const auto& [place, run] : batch.recent_runs) {
    batch.recent.emplace(place, std::move((*found)[next++]));
  }
}

/// What the rules judge: of a server that runs for long, its last days.
advice::Facts ReportMaker::judged_facts(const Batch& batch,
                                        std::size_t place,
                                        const Evidence& whole,
                                        const report::Report& report,
                                        const advice::RuleSet& rules) {
  const auto recent = batch.recent.find(place);
  if (recent == batch.recent.end()) {
    advice::Facts facts = facts_of(whole, report, rules);
    add_flavor(whole, batch.flavors, batch.flavor_margin, facts);
    return facts;
  }
  const Evidence evidence{.unit = whole.unit,
                          .run = batch.recent_runs.at(place),
                          .measured = recent->second.nodes.empty() ? nullptr : &recent->second,
                          .earlier = whole.earlier,
                          .out_of_memory = whole.out_of_memory};
  advice::Facts facts = facts_of(evidence, report_of(evidence), rules);
  add_flavor(evidence, batch.flavors, batch.flavor_margin, facts);
  return facts;
}

report::Report ReportMaker::finish(const Batch& batch,
                                   std::size_t place,
                                   const advice::RuleSet& rules) {
  const StoredUnit& unit = batch.units[place];
  const Family& family = batch.families[place];
  const auto& measured = batch.measured[place];
  const auto longest = batch.longest_limits.find(unit.tag("partition"));
  const auto not_used = batch.not_used_kwh.find(key_of(unit.unit));
  const Evidence evidence{
      .unit = unit,
      .run = batch.runs[place],
      .measured = measured ? &*measured : nullptr,
      .earlier = family.runs,
      .out_of_memory = family.out_of_memory,
      .longest_limit = longest == batch.longest_limits.end() ? report::Number() : longest->second,
      .not_used_kwh = not_used == batch.not_used_kwh.end() ? report::Number() : not_used->second};
  report::Report report = report_of(evidence);
  if (const auto marks = batch.marks.find(place); marks != batch.marks.end()) {
    add_marks(marks->second, report);
  }
  advice::Case judged{.facts = judged_facts(batch, place, evidence, report, rules),
                      .manager = unit.unit.resource_manager,
                      .earlier = {}};
  for (std::size_t i = 0; i < family.runs.size() && i < kMaxEarlier; ++i) {
    judged.earlier.push_back(earlier_facts(judged.facts, family.runs[i]));
  }
  const bool runs = report.state == report::State::kSoFar;
  if (!runs || advice::is_known(judged.facts.value_of(kFlavorFact))) {
    report.findings = advice::judge(rules, judged);
  }
  if (runs) {  // the others look at the whole of a run
    std::erase_if(report.findings, [&rules](const advice::Finding& finding) {
      return !needs_flavor(rules, finding.rule);
    });
  }
  return report;
}

void ReportMaker::set_cost(const StoredUnit& unit,
                           Costs& costs,
                           std::int64_t now_ms,
                           report::Report& report) const {
  const auto hours = [&](const char* name) {
    const auto found = unit.unit.total_time_seconds.find(name);
    return found == unit.unit.total_time_seconds.end() ? 0.0 : found->second / kHourSeconds;
  };
  const std::int64_t ended_ms = unit.unit.ended_at_ts;
  report.cost.amount =
      costs.of(unit.unit.cluster_id, unit.unit.started_at_ts, ended_ms > 0 ? ended_ms : now_ms,
               report.energy.kwh, hours("alloc_cputime"), hours("alloc_gputime"));
  if (report.cost.amount) {
    report.cost.currency = accounting_->currency();
  }
}

void ReportMaker::add_cost(const StoredUnit& unit,
                           std::int64_t now_ms,
                           report::Report& report) const {
  if (report.cost.amount || accounting_ == nullptr || !accounting_->priced()) {
    return;
  }
  Costs costs = accounting_->costs();
  set_cost(unit, costs, now_ms, report);
  report::round_report(report);
}

Result<MadeReports> ReportMaker::make_all(const std::vector<StoredUnit>& units,
                                          const store::Scope& members,
                                          std::int64_t now_ms) const {
  MadeReports made;
  if (units.empty()) {
    return made;
  }
  Batch batch{.units = units, .cluster_id = units.front().unit.cluster_id};
  set_ends(batch, now_ms);
  measure(batch);
  read_marks(batch);
  CEEMS_TRY(find_families(batch));
  measure_earlier(batch);
  const auto rules = rules_.get();
  CEEMS_TRY(read_flavors(batch, *rules));
  if (const auto found = find_longest_limits(batch); !found) {  // advice says less
    log::debug("the longest time limits are not known", {{"err", found.error().message}});
  }
  if (const auto read = read_not_used(batch); !read) {  // the report says less
    log::debug("what was not used is not known", {{"err", read.error().message}});
  }
  measure_recent(batch);
  MonthShares months(reader_, members);
  std::optional<Costs> costs;
  if (accounting_ != nullptr && accounting_->priced()) {
    costs.emplace(accounting_->costs());
  }
  for (std::size_t i = 0; i < units.size(); ++i) {
    report::Report report = finish(batch, i, *rules);
    compare_results(reader_, batch.families[i].runs, report);
    CEEMS_TRY(share, months.share_of(units[i].unit, report.energy.kwh));
    report.compared.project_month_share = share;
    if (costs) {
      set_cost(units[i], *costs, now_ms, report);
    }
    report::round_report(report);
    const auto& measured = batch.measured[i];
    made.reports.push_back(
        {.report = std::move(report),
         .numbers = measured ? numbers_of(*measured) : RunMeasurements{},
         .nodes = measured ? node_loads(*measured, batch.runs[i]) : std::vector<NodeLoad>{}});
  }
  made.missing = std::move(batch.missing);
  return made;
}

Result<report::Report> ReportMaker::make(const StoredUnit& unit,
                                         const store::Scope& members,
                                         std::int64_t now_ms) const {
  auto made = make_all({unit}, members, now_ms);
  return made ? Result<report::Report>(std::move(made->reports.front().report))
              : fail(std::move(made).error());
}

}  // namespace ceems::api
