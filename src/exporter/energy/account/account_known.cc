// The figures learned from "wall less known", for the set of known domains that it belongs to.
#include <algorithm>
#include <utility>
#include <vector>

#include "exporter/energy/account/account.h"

namespace ceems::exporter::energy {

/// The figures of the rest of the node.
Learned::Idle Account::learned_rest() const {
  Learned::Idle rest{.domain = Domain::kOther,
                     .meters = meters_of(Domain::kOther),
                     .bins = idle_.at(index(Domain::kOther)).state()};
  if (wall_domain() == Domain::kOther) {
    add_learned_wall(rest);
  }
  return rest;
}

/// Adds what units draw at the wall, where no meter shows the packages.
void Account::add_learned_wall(Learned::Idle& entry) const {
  if (learned_until_ && !known(Domain::kPackage)) {
    const UnitWatts::State state = wall_watts_.state();
    entry.estimate = wall_estimate();
    entry.core = state.core;
    entry.system = state.system;
    entry.losses = state.losses;
    entry.units = learned_units(wall_watts_);
  }
}

/// The lag of the wall meter and its line beside the known domains.
std::optional<Learned::Lag> Account::learned_lag() const {
  const auto state = lag_source_ ? lag_.state() : std::nullopt;
  if (!state) {
    return std::nullopt;
  }
  return Learned::Lag{
      .source = sources_[*lag_source_].info.name, .known = known_set_.names(), .state = *state};
}

/// By how much more the known domains draw when idle than the former set. Nothing where
/// that is not known: what a device drew before it was known is certain only if it is at rest.
std::optional<double> Account::moved_watts() const {
  constexpr double kAtRest = 0.05;
  double watts = 0;
  std::size_t found = 0;
  for (const Device& device : devices_) {
    if (std::ranges::find(known_set_.joined(), device.place) != known_set_.joined().end()) {
      if (!device.utilisation || *device.utilisation > kAtRest) {
        return std::nullopt;
      }
      watts += device.watts;
      ++found;
    }
    if (std::ranges::find(known_set_.left(), device.place) != known_set_.left().end()) {
      watts -= device.idle.watts().value_or(0);
      ++found;
    }
  }
  const bool only_devices = found == known_set_.joined().size() + known_set_.left().size();
  return only_devices ? std::optional(watts) : std::nullopt;
}

/// Takes the figures that are stored for this set, or moves the former set's figures, or begins
/// anew.
void Account::learn_rest_anew() {
  IdlePower& rest = idle_.at(index(Domain::kOther));
  const Learned::Idle* before =
      restored_.find({.domain = Domain::kOther, .meters = meters_of(Domain::kOther)});
  const MeterLag::State* line =
      lag_source_ ? restored_.lag_of(sources_[*lag_source_].info.name, known_set_.names())
                  : nullptr;
  const auto moved = moved_watts();
  lag_.restart_history();
  if (before == nullptr && moved) {
    rest.move(-*moved);
    wall_watts_.move_idle(-*moved);
  } else {
    rest.forget();
    rest.restore(before == nullptr ? std::vector<IdlePower::Bin>() : before->bins);
    wall_begun_ = false;
    learned_until_.reset();
    learned_lag_.reset();
  }
  if (line == nullptr && moved) {
    lag_.move_line(*moved);
  } else {
    lag_.set_line(line);
  }
  counted_ = {};
}

/// Notes which sources deliver energy. When that changes, the figures of the wall less the
/// known domains are kept for the time when the same are known again.
void Account::follow_known_set(const Interval& interval) {
  const bool bridge = interval.wall && expected_rest(0);
  Learned::Idle rest = learned_rest();
  auto lag = learned_lag();
  const bool changed = known_set_.advance(interval.seconds, bridge);
  if (changed) {
    if (!rest.bins.empty() || rest.estimate) {
      restored_.put(std::move(rest));
    }
    if (lag) {
      restored_.put(*std::move(lag));
    }
    learn_rest_anew();
  } else if (!all_known_ && !known_set_.any_missing()) {
    lag_.restart_history();  // it has a gap
  }
  all_known_ = !known_set_.any_missing();
}

}  // namespace ceems::exporter::energy
