#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/unit.h"
#include "tsdb/client.h"
#include "tsdb/query_template.h"

namespace ceems::ingest {

/// The value of a unit in the answer to a query.
struct UnitValue {
  std::string uuid;
  double value = 0;
};

/// The parameters of a query except for the units.
struct QueryContext {
  tsdb::QueryVariables variables;
  std::int64_t time_ms = 0;
  std::chrono::milliseconds lookback{0};
  std::chrono::milliseconds timeout{0};
  bool complete = true;
  std::size_t max_series_per_unit = 1;
};

/// Returns the parameters for queries about a window.
QueryContext query_context(model::Window window, const tsdb::Settings& settings);

/// Runs one query for some units and returns their values, sorted by uuid. While the TSDB rejects
/// the query because of too many samples, the list is halved. Series of other units are ignored.
/// Passes on errors of tsdb::Client::query(), kInvalidArgument if a unit has more than one sample,
/// because neither their sum nor one of them is right for every metric, and kUnavailable after a
/// stop.
Result<std::vector<UnitValue>> ask_units(tsdb::Client& client,
                                         const tsdb::QueryTemplate& query,
                                         const QueryContext& context,
                                         const std::vector<std::string>& uuids,
                                         const std::stop_token& stop);

/// How many units one query may name, if each has `max_series` series: as many as need the fraction
/// `min_samples` of the samples that the TSDB allows per query.
std::int64_t batch_size(model::Window window,
                        const tsdb::Settings& settings,
                        std::int64_t max_series,
                        double min_samples);

}  // namespace ceems::ingest
