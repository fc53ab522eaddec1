#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ceems::store {

// Which units have ended, in the order in which that became known, and up to which of them each
// target has received them: the tables ceems_ended_units and ceems_export_targets
// (docs/export.md, "Send units as they end").
//
// A unit gets its place in the transaction that writes its end, so none is missed that becomes
// known late, and what reads behind a position sees each. It gets another place when its end
// changes, and when a gap of its measurements is filled: until then it is left out. While there
// is no target, nothing gets a place. Reader::ended_units() reads the units.

/// What a target does not have yet.
struct EndedBacklog {
  std::int64_t units = 0;      ///< places, among them those that wait for a gap
  std::int64_t oldest_ms = 0;  ///< the first of their ends; 0 if there is none
};

/// The positions of targets. Used by one thread at a time. Every function is a transaction. Errors:
/// kUnavailable if trying again may help (also where another program leads), otherwise kInternal.
class ExportTargets {
 public:
  virtual ~ExportTargets() = default;

  /// Adds those that are new, behind all units that have ended so far, and removes all others.
  virtual Result<> set(const std::vector<std::string>& names) = 0;
  /// The place of the last unit that the target has; kNotFound if there is no such target.
  virtual Result<std::int64_t> position(const std::string& name) = 0;
  /// Moves the target on, never back, and deletes the places that all targets have passed.
  virtual Result<> advance(const std::string& name, std::int64_t place) = 0;
};

}  // namespace ceems::store
