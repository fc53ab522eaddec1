#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/unit.h"
#include "store/units/unit_row.h"

namespace ceems::store {

/// Which values of a stored unit are stand-ins (model::Unit::owner_stands_in and
/// allocation_stands_in). They are named in the key "stand_ins" of its allocation.
struct StandIns {
  bool owner = false;
  bool allocation = false;
};
StandIns stand_ins_of(std::string_view allocation);

/// A window and the row that it is added to, as they have to be merged so that a stand-in is
/// replaced by what is known and never the other way round.
struct Reconciled {
  model::Unit unit;
  std::optional<StoredUnit> stored;  ///< nothing: the row is merged as it is
  bool new_owner = false;            ///< a name replaces the owner that stood in
  bool new_allocation = false;
};
/// Nothing if there is no stand-in on either side. Allocated time that was counted by a stand-in
/// is corrected: by the stored rate for a window with a stand-in, and by the window's rate for the
/// time before it, unless the window has the `whole_time` of the unit.
std::optional<Reconciled> reconcile(const model::Unit& unit,
                                    const StoredUnit* stored,
                                    const model::MetricMap& stored_times,
                                    bool whole_time);

}  // namespace ceems::store
