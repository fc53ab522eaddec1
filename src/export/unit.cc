#include "export/unit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/time/durations.h"
#include "base/time/time_zone.h"
#include "store/fields.h"
#include "store/json.h"
#include "store/merge.h"
#include "store/shown_id.h"

namespace ceems::exporting {
namespace {

constexpr std::size_t kPage = 5000;

/// The fields that are read, in this order.
constexpr std::array<std::string_view, 22> kFields{
    "cluster_id",
    "resource_manager",
    "uuid",
    "name",
    "username",
    "groupname",
    "project",
    "state",
    "started_at",
    "created_at_ts",
    "started_at_ts",
    "ended_at_ts",
    "allocation",
    "tags",
    "total_time_seconds",
    "total_cpu_energy_usage_kwh",
    "total_gpu_energy_usage_kwh",
    "total_cpu_emissions_gms",
    "total_gpu_emissions_gms",
    "avg_cpu_usage",
    "avg_cpu_mem_usage",
    "avg_gpu_usage",
};

Result<std::vector<std::size_t>> field_list() {
  std::vector<std::size_t> fields;
  for (const std::string_view name : kFields) {
    const auto found = store::find_field(store::unit_fields(), name);
    if (!found) {
      return fail(ErrorCode::kInternal, "units have no field {}", name);
    }
    fields.push_back(*found);
  }
  return fields;
}

model::MetricMap map_of(const store::Cursor& row, std::size_t column) {
  return store::parse_metric_map(row.text(column)).value_or(model::MetricMap());
}

std::optional<double> entry(const model::MetricMap& map, std::string_view name) {
  const auto found = map.find(name);
  return found == map.end() || !std::isfinite(found->second) ? std::nullopt
                                                             : std::optional(found->second);
}

ExportedUnit unit_of(const store::Cursor& row) {
  ExportedUnit unit{.cluster = std::string(row.text(0)),
                    .manager = std::string(row.text(1)),
                    .uuid = std::string(row.text(2)),
                    .name = std::string(row.text(3)),
                    .user = std::string(row.text(4)),
                    .group = std::string(row.text(5)),
                    .project = std::string(row.text(6)),
                    .state = std::string(row.text(7)),
                    .started = std::string(row.text(8)),
                    .created_ms = row.integer(9),
                    .started_ms = row.integer(10),
                    .ended_ms = row.integer(11),
                    .allocation = JsonMembers::parse(row.text(12)),
                    .tags = JsonMembers::parse(row.text(13)),
                    .times = map_of(row, 14),
                    .cpu_kwh = entry(map_of(row, 15), "total"),
                    .gpu_kwh = entry(map_of(row, 16), "total"),
                    .cpu_use = entry(map_of(row, 19), "global"),
                    .memory_use = entry(map_of(row, 20), "global"),
                    .gpu_use = entry(map_of(row, 21), "global")};
  // Both parts by the source that decides the CPUs' part, as in lists and reports.
  const model::MetricMap cpu = map_of(row, 17);
  const model::MetricMap gpu = map_of(row, 18);
  unit.emission_source = store::first_source(cpu.empty() ? gpu : cpu);
  const auto cpu_grams = entry(cpu, unit.emission_source);
  const auto gpu_grams = entry(gpu, unit.emission_source);
  if (cpu_grams || gpu_grams) {
    unit.grams = cpu_grams.value_or(0) + gpu_grams.value_or(0);
  }
  return unit;
}

}  // namespace

std::string ExportedUnit::shown_id() const {
  std::string id = store::array_id(allocation);
  return id.empty() ? uuid : id;
}

double ExportedUnit::seconds() const {
  const auto wall = entry(times, "walltime");
  const double whole = static_cast<double>(ended_ms - started_ms) / static_cast<double>(kSecondMs);
  return wall && *wall > 0 ? *wall : started_ms > 0 ? std::max(whole, 0.0) : 0;
}

std::string utc_text(std::int64_t ms) {
  return ms > 0 ? TimeZone().local(ms) + "Z" : "";
}

Result<> each_unit(store::Reader& reader,
                   const Selection& selection,
                   const std::function<Result<>(ExportedUnit&)>& take) {
  CEEMS_TRY(fields, field_list());
  store::UnitQuery query;
  query.owners.everybody = true;  // who can read the database can read everything in it
  if (!selection.cluster.empty()) {
    query.clusters = {selection.cluster};
  }
  query.ended = selection.ended;
  query.order = store::UnitOrder::kByEnd;
  query.limit = kPage;
  std::optional<Position> after = selection.after;
  while (true) {
    if (after) {
      query.after = after->key;
      query.after_ended_ms = after->ended_ms;
    }
    CEEMS_TRY(rows, reader.units(query, fields));
    std::size_t count = 0;
    for (;; ++count) {
      CEEMS_TRY(more, rows->next());
      if (!more) {
        break;
      }
      ExportedUnit unit = unit_of(*rows);
      after = Position{
          .ended_ms = unit.ended_ms,
          .key = {.cluster_id = unit.cluster, .uuid = unit.uuid, .started_at = unit.started}};
      CEEMS_TRY(take(unit));
    }
    if (count < kPage) {
      return {};
    }
  }
}

Result<std::vector<EndedUnit>> ended_units(store::Reader& reader,
                                           std::int64_t after,
                                           std::size_t limit) {
  CEEMS_TRY(fields, field_list());
  CEEMS_TRY(rows, reader.ended_units(after, limit, fields));
  std::vector<EndedUnit> units;
  while (true) {
    CEEMS_TRY(more, rows->next());
    if (!more) {
      return units;
    }
    units.push_back({.place = rows->integer(kFields.size()), .unit = unit_of(*rows)});
  }
}

}  // namespace ceems::exporting
