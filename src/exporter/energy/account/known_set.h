#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "exporter/energy/meter/meter.h"

namespace ceems::exporter::energy {

/// The counters and devices that are known to draw power: the set that the rest of the node,
/// "wall less known", belongs to. Learned figures of the rest hold for one set only. If a GPU
/// library answers late, a card falls off the bus, a driver is started again or a zone of memory
/// appears, the same wall meter has another rest.
///
/// A member is whatever delivers energy. It joins at once. One that is silent for more than kSilent
/// seconds is missing; it leaves the set then, or after kBridge seconds where the account can
/// bridge the gap (Account::split_missing()), because most are back by then: a driver is started
/// again, a library hangs.
///
/// Units: seconds. Source: a convention. Not thread-safe.
class KnownSet {
 public:
  static constexpr double kSilent = 5;
  static constexpr double kBridge = 3600;

  /// Adds a source or device, which is not a member yet. Returns its place.
  std::size_t add(Domain domain, std::string name);
  /// It delivered energy in the interval that advance() will take.
  void see(std::size_t place) { slots_[place].seen = true; }
  /// Ends an interval. Returns whether the set has changed; joined() and left() say by what.
  /// `bridge`: gaps of devices are bridged.
  bool advance(double seconds, bool bridge);

  [[nodiscard]] bool member(std::size_t place) const { return slots_[place].member; }
  /// A member that is silent.
  [[nodiscard]] bool missing(std::size_t place) const {
    return slots_[place].member && slots_[place].silent > kSilent;
  }
  [[nodiscard]] bool any_missing() const { return missing_ > 0; }
  [[nodiscard]] bool empty() const { return names_.empty(); }
  [[nodiscard]] const std::vector<std::size_t>& joined() const { return joined_; }
  [[nodiscard]] const std::vector<std::size_t>& left() const { return left_; }
  /// Names of the members, sorted, with commas between: the same for the same set.
  [[nodiscard]] const std::string& names() const { return names_; }

 private:
  struct Slot {
    Domain domain = Domain::kPackage;
    std::string name;
    bool member = false;
    bool seen = false;
    double silent = 0;
  };
  void name_members();

  std::vector<Slot> slots_;
  std::vector<std::size_t> joined_;
  std::vector<std::size_t> left_;
  std::size_t missing_ = 0;
  std::string names_;
};

}  // namespace ceems::exporter::energy
