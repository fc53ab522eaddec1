#include "api/report/maker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <boost/json.hpp>

#include "api/report/facts.h"
#include "api/report/month.h"
#include "base/log.h"
#include "base/strings.h"
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

/// How long after the end its last samples become visible: a scrape, and what it takes.
constexpr std::int64_t kSettleMs = 90'000;
/// How many units of the user are looked through for the family.
constexpr std::size_t kMaxCandidates = 1000;
constexpr std::size_t kMaxEarlier = 8;

json::object object_of(std::string_view text) {
  json::error_code error;
  auto value = json::parse(json::string_view(text.data(), text.size()), error);
  return !error && value.is_object() ? std::move(value.as_object()) : json::object();
}

std::size_t field_named(std::string_view name) {
  return store::find_field(store::unit_fields(), name).value_or(0);
}

/// The fields that read_stored_units() reads, in the order in which unit_of() takes them.
const std::vector<std::size_t>& stored_fields() {
  static const std::vector<std::size_t> kFields = [] {
    std::vector<std::size_t> fields;
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

report::FamilyKey key_of(const StoredUnit& unit) {
  const auto whole = [&](std::string_view name) {
    return std::llround(std::clamp(unit.allocated(name).value_or(0), 0.0, 1e12));
  };
  return {.partition = unit.tag("partition"),
          .name = report::family_name(unit.unit.name),
          .nodes = whole("nodes"),
          .cpus = whole("cpus"),
          .gpus = whole("gpus")};
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
  auto rows = reader.units(query, stored_fields());
  if (!rows) {
    return fail(std::move(rows).error());
  }
  std::vector<StoredUnit> units;
  while (true) {
    const auto row = (*rows)->next();
    if (!row) {
      return fail(row.error());
    }
    if (!*row) {
      return units;
    }
    units.push_back(unit_of(**rows));
  }
}

struct ReportMaker::Family {
  std::vector<EarlierRun> runs;  ///< newest first, without the present one
  std::size_t out_of_memory = 0;
};

Result<ReportMaker::Family> ReportMaker::family_of(const StoredUnit& unit,
                                                   const UnitRun& run) const {
  store::UnitQuery query;
  query.owners = access::rows_of_owner(unit.unit.username);
  query.projects = {unit.unit.project};
  query.clusters = {unit.unit.cluster_id};
  query.ended =
      store::TimeRange{.from_ms = run.ended_ms - report::kFamilyMs, .to_ms = run.ended_ms};
  query.order = store::UnitOrder::kByEnd;
  query.descending = true;
  query.limit = kMaxCandidates;
  auto candidates = read_stored_units(reader_, query);
  if (!candidates) {
    return fail(std::move(candidates).error());
  }
  const report::FamilyKey key = key_of(unit);
  Family family;
  for (StoredUnit& candidate : *candidates) {
    const bool same = candidate.unit.uuid == unit.unit.uuid &&
                      candidate.unit.started_at_ts == unit.unit.started_at_ts;
    if (same || candidate.unit.started_at_ts <= 0 || key_of(candidate) != key) {
      continue;
    }
    if (candidate.unit.state == "OUT_OF_MEMORY") {
      ++family.out_of_memory;
    }
    if (candidate.unit.state == "COMPLETED" && family.runs.size() + 1 < report::kMaxFamily) {
      family.runs.push_back({.unit = std::move(candidate), .measured = {}});
    }
  }
  if (measurements_ == nullptr || family.runs.empty()) {
    return family;
  }
  std::vector<UnitRun> lives;
  for (const EarlierRun& earlier : family.runs) {
    const model::Unit& member = earlier.unit.unit;
    lives.push_back({.uuid = member.uuid,
                     .started_ms = member.started_at_ts,
                     .ended_ms = member.ended_at_ts,
                     .until_ms = member.ended_at_ts});
  }
  const auto measured = measurements_->measure_runs(unit.unit.cluster_id, lives);
  if (measured) {
    for (std::size_t i = 0; i < family.runs.size(); ++i) {
      family.runs[i].measured = (*measured)[i];
    }
  } else if (measured.error().code != ErrorCode::kNotFound) {
    log::warn("cannot read what earlier runs used", {{"err", measured.error().message}});
  }
  return family;
}

std::int64_t ReportMaker::until_of(const StoredUnit& unit, std::int64_t now_ms) const {
  if (unit.unit.ended_at_ts <= 0) {
    return now_ms;
  }
  std::int64_t until = std::min(unit.unit.ended_at_ts + kSettleMs, now_ms);
  // The ID may have been given again meanwhile, to somebody else's unit.
  const auto lives = reader_.unit_lives({}, unit.unit.cluster_id, {unit.unit.uuid});
  if (!lives) {
    return unit.unit.ended_at_ts;
  }
  for (const store::UnitLife& life : *lives) {
    if (life.started_ms > unit.unit.started_at_ts) {
      until = std::min(until, life.started_ms - 1);
    }
  }
  return std::max(until, unit.unit.started_at_ts);
}

Result<report::Report> ReportMaker::make(const StoredUnit& unit,
                                         const store::Scope& members,
                                         std::int64_t now_ms) const {
  const UnitRun run{.uuid = unit.unit.uuid,
                    .started_ms = unit.unit.started_at_ts,
                    .ended_ms = unit.unit.ended_at_ts > 0 ? unit.unit.ended_at_ts : now_ms,
                    .until_ms = until_of(unit, now_ms)};
  std::optional<UnitMeasurements> measured;
  if (measurements_ != nullptr && run.started_ms > 0 && run.until_ms > run.started_ms) {
    auto found = measurements_->measure(unit.unit.cluster_id, run);
    if (found) {
      if (!found->nodes.empty()) {
        measured = std::move(*found);
      }
    } else if (found.error().code != ErrorCode::kNotFound) {
      log::warn("cannot read what a unit used", {{"err", found.error().message}});
    }
  }
  auto family = family_of(unit, run);
  if (!family) {
    return fail(std::move(family).error());
  }
  const Evidence evidence{.unit = unit,
                          .run = run,
                          .measured = measured ? &*measured : nullptr,
                          .earlier = family->runs,
                          .out_of_memory = family->out_of_memory};
  report::Report report = report_of(evidence);
  advice::Case judged{.facts = facts_of(evidence, report)};
  for (std::size_t i = 0; i < family->runs.size() && i < kMaxEarlier; ++i) {
    judged.earlier.push_back(earlier_facts(judged.facts, family->runs[i]));
  }
  if (report.state != report::State::kSoFar) {
    report.findings = advice::judge(rules_, judged);
    if (unit.unit.resource_manager != "slurm") {  // the lines are options of sbatch
      for (advice::Finding& finding : report.findings) {
        finding.sbatch.clear();
        finding.was.clear();
      }
    }
  }
  const auto month_kwh = project_month_kwh(reader_, unit.unit, members);
  if (!month_kwh) {
    return fail(month_kwh.error());
  }
  if (report.energy.kwh && *month_kwh && **month_kwh >= *report.energy.kwh && **month_kwh > 0) {
    report.compared.project_month_share = *report.energy.kwh / **month_kwh;
  }
  report::round_report(report);
  return report;
}

}  // namespace ceems::api
