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

// How a window is merged into rows (docs/api/database.md, "How a window is written"). Nothing here
// uses a database: stored rows go in, statements come out. Pure functions, except that they log
// malformed values of stored rows.

/// How a window changes the row of a unit.
struct UnitChange {
  std::vector<WriterCall> calls;         ///< empty: the window has nothing new about it
  std::vector<std::int64_t> moved_from;  ///< last updates (epoch ms) of the rows that it changes
  bool counts = false;                   ///< it adds to the usage of its user and project
  bool is_new = false;                   ///< nothing was stored of it
  std::string username, project;         ///< as stored
  model::MetricMap times;                ///< seconds that the window adds
  std::vector<WriterCall> facts;         ///< what stores the unit's facts, after `calls`
};
/// `stored` are the rows with the unit's cluster and uuid. Writer::write() says what is added.
UnitChange change_of(const Batch& batch,
                     const model::Unit& unit,
                     std::span<const StoredUnit> stored);

/// How a filled gap changes the row of a unit.
struct UnitFill {
  std::optional<WriterCall> call;       ///< nothing: the unit has been purged
  std::int64_t last_updated_at_ts = 0;  ///< of its row, epoch ms
  std::string username, project;        ///< as stored
  std::optional<WriterCall> facts;      ///< what stores the change of the unit's facts
};
/// `unit` has the metrics of the gap and the window's times. Only the times named in `times` are
/// added.
UnitFill fill_of(std::string_view cluster_id,
                 const model::Unit& unit,
                 std::span<const std::string> times,
                 std::span<const StoredUnit> stored);

/// A row of usage or daily_usage to which a window is added.
class UsageRow {
 public:
  /// The texts come from the first unit that adds to it.
  UsageRow(std::string resource_manager, std::string groupname)
      : resource_manager_(std::move(resource_manager)), groupname_(std::move(groupname)) {}

  /// Reads the stored row, a result of kFindUsage or kFindDay. `what` names it in the log.
  void load(const AnswerRow& row, std::string_view what);
  void add(const model::Unit& unit, const UnitChange& change);
  /// Adds the metrics of a gap, whose window has been added before.
  void fill(const model::Unit& unit, std::span<const std::string> times);
  /// The statement that stores what fill() added; nothing if the row has been purged.
  [[nodiscard]] std::optional<WriterCall> fill_call(bool daily) const;
  /// The statement that stores what add() added.
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
  bool fresh_ = true;  ///< no unit was added yet; the maps of the first one are taken unchanged
};

}  // namespace ceems::store
