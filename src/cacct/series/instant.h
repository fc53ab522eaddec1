#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "cacct/output/answer.h"
#include "cacct/output/fields.h"
#include "cacct/series/config.h"
#include "tsdb/client.h"

namespace ceems::cacct {

/// The field that shows an instant query of the configuration.
Field instant_field(const SeriesQuery& query);

/// A period in epoch seconds.
struct InstantWindow {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// Runs the query at the end of the window, for all units at once, and adds its values to the
/// units with the same `uuid`. If a unit has several series, their values are told apart by the
/// label `provider`, and those that have the same are added up.
Result<> add_instant_value(tsdb::Client& client,
                           const SeriesQuery& query,
                           InstantWindow window,
                           tsdb::QueryVariables variables,
                           std::vector<Record>& units);

}  // namespace ceems::cacct
