#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/updater/query_template.h"
#include "model/unit.h"
#include "tsdb/client.h"

namespace ceems::ingest {

/// What a unit has in the answer to a query.
struct UnitValue {
  std::string uuid;
  double value = 0;
};

/// What a query needs besides the units.
struct QueryContext {
  QueryVariables variables;
  std::int64_t time_ms = 0;
  std::chrono::milliseconds lookback{0};
  std::chrono::milliseconds timeout{0};
  bool complete = true;
  std::size_t max_series_per_unit = 1;
};

/// For queries about a window.
QueryContext query_context(model::Window window, const tsdb::Settings& settings);

/// Runs one query for some units, sorted by uuid; splits them in halves while the TSDB refuses the
/// query because of too many samples. Series of other units are left out. Errors: those of
/// tsdb::Client::query(), kUnavailable when stopped.
Result<std::vector<UnitValue>> ask_units(tsdb::Client& client,
                                         const QueryTemplate& query,
                                         const QueryContext& context,
                                         const std::vector<std::string>& uuids,
                                         const std::stop_token& stop);

/// How many units to ask for at once: as many as touch the share `min_samples` of the samples that
/// the TSDB reads for a query, with `max_series` series each.
std::int64_t batch_size(model::Window window,
                        const tsdb::Settings& settings,
                        std::int64_t max_series,
                        double min_samples);

}  // namespace ceems::ingest
