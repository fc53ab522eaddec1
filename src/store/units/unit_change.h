#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/unit.h"
#include "store/merge.h"
#include "store/sql/session.h"
#include "store/units/unit_row.h"

namespace ceems::store {

// How a window is merged into rows (docs/api/database.md, "How a window is written"), without a
// database: rows go in, statements come out. Pure functions; what is malformed is logged.

/// What becomes of a unit.
struct UnitChange {
  std::vector<WriterCall> calls;         ///< empty: all is counted already
  std::vector<std::int64_t> moved_from;  ///< when the rows that it changes were updated before
  bool counts = false;                   ///< adds to the usage of its user and project
  bool is_new = false;
  std::string username, project;  ///< as stored
  model::MetricMap times;         ///< that are counted
};
/// `stored` are the rows of the unit's cluster and uuid.
UnitChange change_of(const Batch& batch,
                     const model::Unit& unit,
                     std::span<const StoredUnit> stored);

/// What a filled gap makes of a unit.
struct UnitFill {
  std::optional<WriterCall> call;       ///< nothing: the unit is gone
  std::int64_t last_updated_at_ts = 0;  ///< of its row
  std::string username, project;        ///< as stored
};
/// `unit` holds the metrics and the window's times, of which `times` are new.
UnitFill fill_of(const model::Unit& unit,
                 std::span<const std::string> times,
                 std::span<const StoredUnit> stored);

/// One row of usage or daily_usage while a window is added to it.
class UsageRow {
 public:
  /// Of the first unit that adds to it.
  UsageRow(std::string resource_manager, std::string groupname)
      : resource_manager_(std::move(resource_manager)), groupname_(std::move(groupname)) {}

  /// Takes over what kFindUsage and kFindDay gave; `what` names it in the log.
  void load(const AnswerRow& row, std::string_view what);
  void add(const model::Unit& unit, const UnitChange& change);
  /// Adds what a gap lacked; the unit's window has been added before.
  void fill(const model::Unit& unit, std::span<const std::string> times);
  /// The statement that stores what fill() added; nothing for a row that is gone.
  [[nodiscard]] std::optional<WriterCall> fill_call(bool daily) const;
  /// The statement that stores it.
  [[nodiscard]] WriterCall call(const Batch& batch,
                                bool daily,
                                const std::string& username,
                                const std::string& project) const;

 private:
  [[nodiscard]] SqlValue value(const Column& column,
                               const Batch& batch,
                               bool daily,
                               const UsageNames& names) const;
  [[nodiscard]] std::string map_text(model::Metric metric) const;

  std::int64_t id_ = 0;  ///< 0: not stored yet
  std::string resource_manager_, groupname_;
  std::int64_t num_units_ = 0;
  std::int64_t num_updates_ = 0;
  model::MetricMap times_;
  std::array<model::MetricMap, model::kMetricCount> maps_;
  std::array<bool, model::kMetricCount> has_map_{};
  AverageWeights weights_;
  bool fresh_ = true;  ///< nothing was added to it ever: the first maps are taken as they are
};

}  // namespace ceems::store
