#include "store/units/stand_ins.h"

#include <algorithm>
#include <string>

#include "base/json.h"
#include "base/json_reader.h"
#include "store/merge.h"

namespace ceems::store {
namespace {

constexpr std::string_view kKey = "stand_ins";
constexpr std::string_view kOwner = "owner";
constexpr std::string_view kAllocation = "allocation";
constexpr std::string_view kWalltime = "walltime";

/// Calls `member` with the name and the JSON text of each member except the key.
template <typename Member>
bool each_other_member(std::string_view allocation, const Member& member) {
  JsonScanner scanner(allocation);
  return each_member(scanner, [&](const std::string& name) {
    std::string value;
    if (!scanner.value(value, 1)) {
      return false;
    }
    if (name != kKey) {
      member(name, value);
    }
    return true;
  });
}

/// The allocation with the key for these stand-ins, or without it if there are none.
std::string marked(std::string_view allocation, StandIns stand_ins) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object();
  if (!each_other_member(allocation, [&json](const std::string& name, const std::string& value) {
        json.key(name).raw(value);
      })) {
    return std::string(allocation);  // malformed: anyone who stores it takes it as empty
  }
  if (stand_ins.owner || stand_ins.allocation) {
    json.key(kKey).begin_array();
    if (stand_ins.allocation) {
      json.value(kAllocation);
    }
    if (stand_ins.owner) {
      json.value(kOwner);
    }
    json.end_array();
  }
  json.end_object();
  return text;
}

/// The times of a window whose allocation stands in, at the rates that are stored.
void scale_times(model::MetricMap& times, const model::MetricMap& stored) {
  const double before = value_or_zero(stored, kWalltime);
  const double now = value_or_zero(times, kWalltime);
  for (auto& [name, value] : times) {
    if (name != kWalltime && before > 0) {
      value = now * value_or_zero(stored, name) / before;
    }
  }
}

/// Adds to the times of a window what earlier windows would have counted at its rates.
void catch_up(model::MetricMap& times, const model::MetricMap& stored) {
  const double before = value_or_zero(stored, kWalltime);
  const double now = value_or_zero(times, kWalltime);
  for (auto& [name, value] : times) {
    if (name != kWalltime && now > 0) {
      value += std::max(before * value / now - value_or_zero(stored, name), 0.0);
    }
  }
}

}  // namespace

StandIns stand_ins_of(std::string_view allocation) {
  StandIns found;
  if (allocation.find(kKey) == std::string_view::npos) {
    return found;
  }
  JsonScanner scanner(allocation);
  each_member(scanner, [&](const std::string& name) {
    std::string value;
    if (name != kKey || !scanner.at('[')) {
      return scanner.value(value, 1);
    }
    scanner.take('[');
    while (scanner.string(value)) {
      found.owner = found.owner || value == kOwner;
      found.allocation = found.allocation || value == kAllocation;
      scanner.take(',');
    }
    return scanner.take(']');
  });
  return found;
}

std::optional<Reconciled> reconcile(const model::Unit& unit,
                                    const StoredUnit* stored,
                                    const model::MetricMap& stored_times,
                                    bool whole_time) {
  const StandIns was = stored != nullptr ? stand_ins_of(stored->unit.allocation) : StandIns{};
  StandIns now{.owner = unit.owner_stands_in, .allocation = unit.allocation_stands_in};
  if (!was.owner && !was.allocation && !now.owner && !now.allocation) {
    return std::nullopt;
  }
  Reconciled result{.unit = unit, .stored = {}, .new_owner = false, .new_allocation = false};
  if (stored != nullptr) {
    result.stored = *stored;
  }
  const bool named = stored != nullptr && !stored->unit.username.empty();
  if (now.owner && named && !was.owner) {
    now.owner = false;  // the stored name stays
  } else if (was.owner && !now.owner) {
    result.new_owner = !unit.username.empty();
    now.owner = !result.new_owner;
  }
  if (result.new_owner) {
    // The store keeps a name that it has.
    result.stored->unit.username.clear();
    result.stored->unit.groupname.clear();
  }
  model::Unit& merged = result.unit;
  const bool given = !unit.allocation.empty() && unit.allocation != "{}";
  if (now.allocation && stored != nullptr && !was.allocation) {
    now.allocation = false;
    merged.allocation = stored->unit.allocation;
    scale_times(merged.total_time_seconds, stored_times);
  } else if (was.allocation && !now.allocation) {
    result.new_allocation = given && value_or_zero(unit.total_time_seconds, kWalltime) > 0;
    now.allocation = !result.new_allocation;
  }
  if (!given && stored != nullptr) {
    merged.allocation = stored->unit.allocation;
  }
  if (result.new_allocation && !whole_time) {
    catch_up(merged.total_time_seconds, stored_times);
  }
  merged.allocation = marked(merged.allocation, now);
  return result;
}

}  // namespace ceems::store
