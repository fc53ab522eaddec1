#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <variant>

#include "model/unit.h"
#include "store/schema/column.h"

namespace ceems::store {

// The columns of units, usage and daily_usage (docs/api/database.md). A row added here adds the
// column to new and upgraded databases of both systems, to all statements and, unless its place is
// kHidden, to the answers and the documentation of the API. Its `since` must be a new version.

namespace tables {

/// Concatenates the rows of some lists.
template <std::size_t... kSizes>
constexpr auto joined(const std::array<Column, kSizes>&... lists) {
  std::array<Column, (kSizes + ...)> all{};
  auto next = all.begin();
  ((next = std::ranges::copy(lists, next).out), ...);
  return all;
}

// Help texts that several tables and the fields of users and projects share.
inline constexpr std::string_view kClusterHelp = "Id of the cluster in the configuration.";
inline constexpr std::string_view kManagerHelp =
    "Kind of the cluster: slurm, openstack, k8s, local.";
inline constexpr std::string_view kProjectHelp = "Account, tenant or namespace.";
inline constexpr std::string_view kGroupHelp = "Group of the user, where the manager knows one.";
inline constexpr std::string_view kUserHelp = "Owner of the unit.";
inline constexpr std::string_view kNameHelp = "Name of the unit, user or project.";
inline constexpr std::string_view kTagsHelp = "Other details from the manager.";
inline constexpr std::string_view kUnitCountHelp = "Number of units.";

using model::Metric;
using model::Unit;

inline constexpr std::array kUnitNames = std::to_array<Column>({
    {.name = "resource_manager",
     .update = Update::kNever,
     .source = &Unit::resource_manager,
     .place = Place::kBody,
     .help = kManagerHelp,
     .example = R"("slurm")",
     .sqlite_type = "text default ''"},
    {.name = "cluster_id",
     .update = Update::kNever,
     .source = ClusterOfWindow{},
     .place = Place::kFirst,
     .help = kClusterHelp,
     .example = R"("hpc-a")"},
    {.name = "uuid",
     .update = Update::kNever,
     .source = &Unit::uuid,
     .place = Place::kBody,
     .always = true,
     .help = "Id of the unit: job, server or pod.",
     .example = R"("7001")"},
    {.name = "name",
     .update = Update::kFirstKnown,
     .source = &Unit::name,
     .place = Place::kBody,
     .help = kNameHelp,
     .example = R"("fluids")"},
    {.name = "project",
     .update = Update::kFirstKnown,
     .source = &Unit::project,
     .place = Place::kBody,
     .help = kProjectHelp,
     .example = R"("fluids")"},
    {.name = "groupname",
     .update = Update::kFirstKnown,
     .source = &Unit::groupname,
     .place = Place::kBody,
     .help = kGroupHelp,
     .example = R"("phys")"},
    {.name = "username",
     .update = Update::kFirstKnown,
     .source = &Unit::username,
     .place = Place::kBody,
     .help = kUserHelp,
     .example = R"("ada")"},
    {.name = "created_at",
     .kind = ColumnKind::kTime,
     .update = Update::kFirstKnown,
     .source = TimeOfUnit{&Unit::created_at, &Unit::created_at_ts},
     .place = Place::kBody,
     .help = "When it was submitted, with offset.",
     .example = R"("2031-04-05T06:07:08+0200")"},
    {.name = "started_at",
     .kind = ColumnKind::kTime,
     .source = TimeOfUnit{&Unit::started_at, &Unit::started_at_ts},
     .place = Place::kBody,
     .help = "When it started, with offset, or the manager's word for unknown.",
     .example = R"("2031-04-05T06:07:30+0200")"},
    {.name = "ended_at",
     .kind = ColumnKind::kTime,
     .source = TimeOfUnit{&Unit::ended_at, &Unit::ended_at_ts},
     .place = Place::kBody,
     .help = "When it ended, with offset, or the manager's word for unknown.",
     .example = R"("2031-04-05T06:08:30+0200")"},
    {.name = "created_at_ts",
     .kind = ColumnKind::kMoment,
     .update = Update::kFirstKnown,
     .source = &Unit::created_at_ts,
     .place = Place::kBody,
     .help = "The same in milliseconds since 1970.",
     .example = "1933128428000"},
    {.name = "started_at_ts",
     .kind = ColumnKind::kMoment,
     .source = &Unit::started_at_ts,
     .place = Place::kBody,
     .help = "The same in milliseconds since 1970.",
     .example = "1933128450000"},
    {.name = "ended_at_ts",
     .kind = ColumnKind::kMoment,
     .source = &Unit::ended_at_ts,
     .place = Place::kBody,
     .help = "The same in milliseconds since 1970; absent while the unit runs.",
     .example = "1933128510000"},
    {.name = "elapsed",
     .source = &Unit::elapsed,
     .place = Place::kBody,
     .help = "Running time, [days-]hours:minutes:seconds.",
     .example = R"("00:01:00")"},
    {.name = "state",
     .source = &Unit::state,
     .place = Place::kBody,
     .help = "State in the manager's words.",
     .example = R"("COMPLETED")"},
    {.name = "allocation",
     .kind = ColumnKind::kObject,
     .update = Update::kNewestGiven,
     .source = &Unit::allocation,
     .place = Place::kBody,
     .help = "What was allocated, in the manager's terms.",
     .example = R"({"cpus":4,"gpus":0,"mem":1073741824,"nodes":1})"},
    {.name = "tags",
     .kind = ColumnKind::kObject,
     .source = &Unit::tags,
     .place = Place::kLast,
     .help = kTagsHelp,
     .example = R"({"partition":"batch","workdir":"/home/ada"})"},
});

inline constexpr std::array kUsageNames = std::to_array<Column>({
    {.name = "resource_manager",
     .update = Update::kNever,
     .source = &UsageNames::resource_manager,
     .place = Place::kBody,
     .always = true,
     .help = kManagerHelp,
     .example = R"("slurm")",
     .sqlite_type = "text default ''"},
    {.name = "cluster_id",
     .update = Update::kNever,
     .source = &UsageNames::cluster_id,
     .place = Place::kFirst,
     .always = true,
     .help = kClusterHelp,
     .example = R"("hpc-a")"},
    {.name = "num_units",
     .kind = ColumnKind::kNumber,
     .update = Update::kCountNew,
     .place = Place::kBody,
     .always = true,
     .help = kUnitCountHelp,
     .example = "9"},
    {.name = "project",
     .update = Update::kNever,
     .source = &UsageNames::project,
     .place = Place::kBody,
     .always = true,
     .help = kProjectHelp,
     .example = R"("fluids")"},
    {.name = "username",
     .update = Update::kNever,
     .source = &UsageNames::username,
     .place = Place::kLate,
     .always = true,
     .help = kUserHelp,
     .example = R"("ada")"},
    {.name = "groupname",
     .update = Update::kNever,
     .source = &UsageNames::groupname,
     .place = Place::kBody,
     .always = true,
     .help = kGroupHelp,
     .example = R"("phys")"},
});

/// A metric whose numbers are added up.
constexpr Column total(std::string_view name,
                       Metric metric,
                       std::string_view help,
                       std::string_view example,
                       std::string_view old_name = {}) {
  return {.name = name,
          .kind = ColumnKind::kMetrics,
          .update = Update::kSum,
          .source = metric,
          .place = Place::kMetrics,
          .help = help,
          .example = example,
          .old_name = old_name};
}
/// A metric whose numbers are averages weighted by `weight`.
constexpr Column mean(std::string_view name,
                      Metric metric,
                      std::string_view weight,
                      std::string_view help,
                      std::string_view example) {
  return {.name = name,
          .kind = ColumnKind::kMetrics,
          .update = Update::kMean,
          .source = metric,
          .weight = weight,
          .place = Place::kMetrics,
          .help = help,
          .example = example};
}

/// Values of custom metrics, in columns that version 10 of the reference's tables added.
constexpr Column custom(std::string_view name,
                        Metric metric,
                        Update update,
                        std::string_view help,
                        std::string_view example) {
  return {.name = name,
          .kind = ColumnKind::kMetrics,
          .update = update,
          .source = metric,
          .weight = update == Update::kMean ? "walltime" : "",
          .place = Place::kMetrics,
          .help = help,
          .example = example,
          .since = 8,
          .reference = 10,
          .sqlite_type = "default '{}'"};
}

/// The maps of all tables: the times, and the metrics in the order of model::Metric.
inline constexpr std::array kMaps = std::to_array<Column>({
    {.name = "total_time_seconds",
     .kind = ColumnKind::kMetrics,
     .update = Update::kSum,
     .place = Place::kMetrics,
     .help = "Running time, and allocated resources times running time.",
     .example = R"({"alloc_cpumemtime":61440,"alloc_cputime":240,"walltime":60})"},
    mean("avg_cpu_usage",
         Metric::kAvgCpuUsage,
         "alloc_cputime",
         "CPU time used, in percent of that allocated.",
         R"({"global":41.25})"),
    mean("avg_cpu_mem_usage",
         Metric::kAvgCpuMemUsage,
         "alloc_cpumemtime",
         "Memory used, in percent of that allocated.",
         R"({"global":12.5})"),
    total("total_cpu_energy_usage_kwh",
          Metric::kTotalCpuEnergyUsageKwh,
          "Energy without that of GPUs, in kWh.",
          R"({"total":0.0732})"),
    total("total_cpu_emissions_gms",
          Metric::kTotalCpuEmissionsGms,
          "Emissions of that energy by source, in g CO2e.",
          R"({"rte_total":4.1})"),
    mean("avg_gpu_usage",
         Metric::kAvgGpuUsage,
         "alloc_gputime",
         "GPU time used, in percent of that allocated.",
         R"({"global":88.75})"),
    mean("avg_gpu_mem_usage",
         Metric::kAvgGpuMemUsage,
         "alloc_gpumemtime",
         "GPU memory used, in percent of that allocated.",
         R"({"global":50.5})"),
    total("total_gpu_energy_usage_kwh",
          Metric::kTotalGpuEnergyUsageKwh,
          "Energy of GPUs, in kWh.",
          R"({"total":0.15})"),
    total("total_gpu_emissions_gms",
          Metric::kTotalGpuEmissionsGms,
          "Emissions of that energy by source, in g CO2e.",
          R"({"rte_total":8.4})"),
    total("total_io_write_stats",
          Metric::kTotalIoWriteStats,
          "Written: bytes, requests.",
          R"({"bytes":1048576,"requests":256})"),
    total("total_io_read_stats",
          Metric::kTotalIoReadStats,
          "Read: bytes, requests.",
          R"({"bytes":2097152,"requests":512})"),
    total("total_ingress_stats",
          Metric::kTotalIngressStats,
          "Received: bytes, packets.",
          R"({"bytes":4096,"packets":16})"),
    total("total_egress_stats",
          Metric::kTotalEgressStats,
          "Sent: bytes, packets.",
          R"({"bytes":8192,"packets":32})",
          "total_outgress_stats"),
    custom("total_custom_stats",
           Metric::kTotalCustomStats,
           Update::kSum,
           "Totals of custom metrics, by the names that the configuration gives them.",
           R"({"llc_misses":52100})"),
    custom("avg_custom_stats",
           Metric::kAvgCustomStats,
           Update::kMean,
           "Averages of custom metrics over the running time.",
           R"({"sm_active":61.5})"),
    custom("min_custom_stats",
           Metric::kMinCustomStats,
           Update::kLeast,
           "Least values of custom metrics.",
           R"({"gpu_temp":41})"),
    custom("max_custom_stats",
           Metric::kMaxCustomStats,
           Update::kGreatest,
           "Greatest values of custom metrics.",
           R"({"gpu_temp":78})"),
});

inline constexpr std::array kIgnore = std::to_array<Column>({
    {.name = "ignore",
     .kind = ColumnKind::kNumber,
     .source = &Unit::ignore,
     .postgres_type = "integer NOT NULL DEFAULT 0"},
});

/// The columns in which the writer keeps its own data about a row.
inline constexpr std::array kWriting = std::to_array<Column>({
    {.name = "num_updates",
     .kind = ColumnKind::kNumber,
     .update = Update::kCount,
     .sqlite_type = "integer default 0"},
    {.name = "last_updated_at", .kind = ColumnKind::kTime, .source = EndOfWindow{}},
    {.name = "last_updated_at_ts",
     .kind = ColumnKind::kMoment,
     .source = EndOfWindow{},
     .since = 1},
    {.name = "ceems_weights",
     .kind = ColumnKind::kMetrics,
     .update = Update::kWeights,
     .since = 3,
     .sqlite_type = "text"},
});

inline constexpr auto kUnitColumns = joined(kUnitNames, kMaps, kIgnore, kWriting);
inline constexpr auto kUsageColumns = joined(kUsageNames, kMaps, kWriting);

inline constexpr std::array<std::string_view, 3> kUnitKey{"cluster_id", "uuid", "started_at"};
inline constexpr std::array<std::string_view, 3> kUsageKey{"cluster_id", "username", "project"};
inline constexpr std::array<std::string_view, 4> kDayKey{"cluster_id", "username", "project",
                                                         "last_updated_at"};

inline constexpr std::array<std::string_view, 5> kTightOfUnits{
    "cluster_id", "created_at", "created_at_ts", "elapsed", "ignore"};
inline constexpr std::array<std::string_view, 3> kTightOfUsage{"cluster_id", "groupname",
                                                               "num_updates"};

/// Whether all metrics are present, each at the index of its enumerator.
constexpr bool metrics_in_order() {
  for (std::size_t i = 0; i < model::kMetricCount; ++i) {
    const Source& source = kMaps.at(i + 1).source;
    if (!std::holds_alternative<Metric>(source) ||
        std::get<Metric>(source) != static_cast<Metric>(i)) {
      return false;
    }
  }
  return kMaps.size() == model::kMetricCount + 1;
}
static_assert(metrics_in_order());

}  // namespace tables

/// One row for each unit.
inline constexpr Table kUnits{.name = "units",
                              .columns = tables::kUnitColumns,
                              .key = tables::kUnitKey,
                              .key_index = "uq_cluster_id_uuid_start",
                              .tight = tables::kTightOfUnits};
/// One row for each user in a project.
inline constexpr Table kUsage{.name = "usage",
                              .columns = tables::kUsageColumns,
                              .key = tables::kUsageKey,
                              .key_index = "uq_cluster_id_project_usr",
                              .tight = tables::kTightOfUsage};
/// The same per day.
inline constexpr Table kDailyUsage{.name = "daily_usage",
                                   .columns = tables::kUsageColumns,
                                   .key = tables::kDayKey,
                                   .key_index = "uq_cluster_id_project_usr_lastupdated",
                                   .tight = tables::kTightOfUsage,
                                   .tight_key = true};
/// The tables in the order in which they are upgraded.
inline constexpr std::array<const Table*, 3> kTables{&kUnits, &kUsage, &kDailyUsage};

/// The current version of ceems_schema (docs/api/database.md). In SQLite files, the columns of
/// custom metrics are not among them: they belong to the reference's version 10.
inline constexpr int kOwnVersion = std::max(21, newest_version(kTables));

/// The maps of these tables: the times, then the metrics in the order of model::Metric.
inline constexpr std::span<const Column> kMapColumns = tables::kMaps;

/// The column of a metric.
constexpr const Column& column_of(model::Metric metric) {
  return kMapColumns[static_cast<std::size_t>(metric) + 1];
}
/// The name of the metric's column and JSON key, e.g. "avg_cpu_usage".
constexpr std::string_view column_name(model::Metric metric) {
  return column_of(metric).name;
}
/// The name in the times by which an average is weighted, e.g. "alloc_cputime"; empty for totals,
/// least and greatest values.
constexpr std::string_view weight_name(model::Metric metric) {
  return column_of(metric).weight;
}

}  // namespace ceems::store
