#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/unit.h"
#include "store/sql/session.h"

namespace ceems::store {

// Rows of ceems_unit_facts: how they are made from rows of `units` (docs/api/database.md, "Facts of
// units"). Pure functions, except that malformed values are silently treated as empty: the row of
// the unit has been logged before.

/// The row of a unit as it is stored after a window, and what the window measured beside it.
struct FactSource {
  std::string cluster_id = {};
  /// The texts, the moments and `ignore`; allocation and tags as JSON.
  const model::Unit* unit = nullptr;
  /// total_time_seconds and the metrics in the order of model::Metric, as stored.
  std::array<std::string_view, model::kMetricCount + 1> maps = {};
  /// The window, whose peak, idle share and idle energy count; null: none.
  const model::Unit* window = nullptr;
  double window_gpu_seconds = 0;  ///< what the window added to alloc_gputime
};

/// The statement that stores the facts of a unit.
WriterCall put_facts(const FactSource& source);
/// The statement that stores what a filled gap changed of them.
WriterCall fill_facts_of(const FactSource& source);
WriterCall delete_facts(std::string_view cluster_id,
                        std::string_view uuid,
                        std::int64_t started_at_ts);

/// The columns of `units` that make_source() reads, in their order.
std::string fact_source_columns();
/// Reads them. `unit` and `maps` get the values, which the result points to.
FactSource make_source(const AnswerRow& row,
                       model::Unit& unit,
                       std::array<std::string, model::kMetricCount + 1>& maps);

/// "CANCELLED by 1000" becomes "CANCELLED".
std::string state_word(std::string_view state);

}  // namespace ceems::store
