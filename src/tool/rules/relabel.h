#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tool/rules/discovery.h"
#include "tool/rules/model.h"
#include "tsdb/client.h"

namespace ceems::tool::rules {

/// A job of a GPU exporter whose labels may be changed when it is scraped.
struct RelabelledJob {
  std::string name;
  GpuKind kind = GpuKind::kNvidia;
};

/// The jobs of GPU exporters in this time, in the order in which Prometheus names their series.
Result<std::vector<RelabelledJob>> gpu_exporter_jobs(tsdb::Client& client, TimeRange range);

/// The YAML text of `scrape_configs` with the relabelling of their metrics.
std::string relabel_text(const std::vector<RelabelledJob>& jobs);
/// The same as JSON.
std::string relabel_json(const std::vector<RelabelledJob>& jobs);

}  // namespace ceems::tool::rules
