#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"
#include "model/unit.h"
#include "tsdb/query_template.h"

namespace ceems::ingest {

/// One sub-metric, e.g. avg_cpu_usage / global.
struct MetricQuery {
  model::Metric metric = model::Metric::kAvgCpuUsage;
  std::string key;
  tsdb::QueryTemplate query;
};

/// The extra_config of the updater `tsdb` (docs/api/updaters.md).
struct TsdbUpdaterOptions {
  std::int64_t query_max_series = 50;
  double query_min_samples = 0.5;
  std::chrono::milliseconds cutoff{0};
  /// Override the settings that the TSDB reports; 0: as it reports.
  std::chrono::milliseconds scrape_interval{0};
  std::chrono::milliseconds evaluation_interval{0};
  bool delete_ignored = false;
  /// If the TSDB can only delete whole series: delete the series of ignored units whose ids are
  /// never reused.
  bool delete_whole_series = false;
  std::vector<std::string> labels_to_drop;
  std::vector<MetricQuery> queries;
  /// Use the exporter's own counters of energy, CPU time and memory: on unless `queries` is given.
  bool unit_counters = true;
  double emission_factor = 445;  ///< g/kWh, for the key global_total; IEA, Electricity 2025
  std::string country_code;      ///< used if a provider has several countries
};

/// The queries of CEEMS 0.10.2 on the series that its recording rules produce
/// (docs/api/updaters.md#default-queries).
std::vector<MetricQuery> default_queries();

/// kInvalidArgument with file and line for wrong types and values and for templates that do not
/// parse. The caller checks the keys. Queries for metrics without a column are logged and left out.
Result<TsdbUpdaterOptions> read_tsdb_updater_options(const config::Node& extra);

}  // namespace ceems::ingest
