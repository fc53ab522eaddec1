// What an account learns from a wall meter, and how it splits what only that shows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "exporter/energy/account/account.h"

namespace ceems::exporter::energy {

/// Splits energy that includes the packages' energy.
void Account::split_wall(double joules, double idle_joules) {
  book_claims_.assign(claims_.cpus().begin(), claims_.cpus().end());
  wall_watts_.divide(claims_.cores(), wall_uses_);
  for (std::size_t i = 0, use = 0; i < book_claims_.size(); ++i) {
    if (use < wall_uses_.size() && wall_uses_[use].key == units_.entries()[i]->serial) {
      book_claims_[i].use = wall_watts_.watts()[use++];
    }
  }
  charge(Domain::kOther, split_,
         split(joules, idle_joules, wall_watts_.total_watts(), book_claims_, split_));
  split(std::min(idle_joules, joules), idle_joules, 0, book_claims_, split_);
  note_idle(Domain::kOther, unused_cpus_);
}

/// Notes what units use, because the wall meter will show later what they draw.
void Account::follow_use(const Interval& interval) {
  const auto entries = units_.entries();
  if (!wall_begun_) {
    wall_begun_ = true;
    begin_wall();
  }
  if (history_.time() > kBefore) {
    wall_before_.clear();
  }
  wall_uses_.clear();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double cores = claims_.cpus()[i].use;
    const bool over = entries[i]->ended && cores <= 0;
    if (!over) {
      wall_uses_.push_back({.key = entries[i]->serial,
                            .cores = cores,
                            .beside_resting = 0,
                            .before = before_of(wall_before_, *entries[i])});
    }
  }
  UseHistory::Means means{.cores = claims_.cores()};
  for (std::size_t socket = 0; socket < claims_.sockets(); ++socket) {
    const double cores = claims_.cores(socket);
    const double max = claims_.cores_max(socket);
    const double resting = max > 0 ? 1 - std::min(1.0, cores / max) : 0;
    means.awake += std::min(1.0, cores) / static_cast<double>(claims_.sockets());
    means.beside_resting += cores * resting;
    for (std::size_t i = 0, use = 0; i < entries.size() && use < wall_uses_.size(); ++i) {
      if (wall_uses_[use].key == entries[i]->serial) {
        wall_uses_[use++].beside_resting += claims_.cpus(socket)[i].use * resting;
      }
    }
  }
  if (!interval.wall || sources_[*interval.wall].info.method == Method::kModelled) {
    return;  // nothing can be learned from the model
  }
  history_.advance(interval.seconds, means, wall_uses_);
  wall_watts_.divide(claims_.cores(), wall_uses_);
}

/// `watts`: without the known domains.
void Account::learn_units_from_wall(const AlignedReading& reading, double watts) {
  constexpr double kOverlap = 0.5;
  const double end = history_.time() - reading.age;
  const double least =
      reading.repeated ? std::max(reading.window, reading.period) : kOverlap * reading.window;
  if (learned_until_ && end - *learned_until_ < least) {
    return;  // most of it was seen before
  }
  if (const auto lag = lag_.lag()) {
    // Values learned at another time are worse than none, unless they fitted.
    if (learned_lag_ && lag->shared(*learned_lag_) < kOverlap && wall_watts_.noise() >= 1) {
      learned_until_.reset();
    }
    learned_lag_ = lag;
  }
  const auto means = history_.look_back(reading.age, reading.window);
  if (!means || std::isnan(claims_.utilisation())) {
    return;
  }
  if (!learned_until_) {
    begin_wall();
  }
  wall_watts_.learn({.joules = watts * reading.window,
                     .seconds = reading.window,
                     .cores_max = claims_.cores_max(),
                     .cores = means->cores,
                     .awake = means->awake,
                     .beside_resting = means->beside_resting,
                     .known_joules = reading.known_watts * reading.window},
                    history_.uses(), learned_until_ ? end - *learned_until_ : reading.window);
  learned_until_ = end;
}

/// Idle power of the node without the known domains, where no meter shows the packages.
std::optional<PowerEstimate> Account::wall_estimate() const {
  /// By what part of it a line through use and power is off, because programs differ.
  constexpr double kLine = 0.05;
  const IdlePower& line = idle_.at(index(wall_domain()));
  auto by_line = line.estimate();
  auto estimate = wall_watts_.idle();
  if (!estimate) {
    return by_line;
  }
  if (by_line) {
    by_line->deviation = std::hypot(by_line->deviation, kLine * by_line->watts);
    estimate = combine(*estimate, *by_line);
  }
  estimate->watts = std::min(estimate->watts, line.lowest().value_or(estimate->watts));
  return estimate;
}

/// Idle power of the rest of the node, where a wall meter shows `wall` watts with `known_watts` in
/// the known domains.
double Account::rest_of_wall(double wall, double known_watts) const {
  const double rest = std::max(0.0, wall - known_watts);
  const auto by_use = idle_.at(index(Domain::kOther)).estimate();
  if (known(Domain::kDram) || !by_use) {
    return rest;
  }
  /// By what part of it the wall is off, because the memory follows the programs and not the
  /// packages.
  constexpr double kMemory = 0.03;
  return combine({.watts = rest, .deviation = kMemory * wall}, *by_use).watts;
}

/// Gives a new value of the wall meter to what learns from it.
void Account::take_wall_value(const Reading& reading, Clock::SteadyTime now) {
  if (lag_fresh_ == reading.fresh) {
    return;
  }
  lag_fresh_ = reading.fresh;
  const double watts = reading.watts.value_or(0);  // never missing here
  const double age = std::chrono::duration<double>(now - reading.fresh).count();
  if (all_known_) {
    lag_.learn(watts, age);
  }
  lag_.hold(watts, age);
}

/// Learns the idle power of the node and of the rest of it from what a wall meter shows.
void Account::learn_from_wall(const Interval& interval, const Sample& sample) {
  if (!interval.wall) {
    return;
  }
  const Reading reading = sample.readings[*interval.wall].value_or(Reading{});
  IdlePower& node = idle_.at(index(Domain::kNode));
  IdlePower& other = idle_.at(index(Domain::kOther));
  if (lag_source_ != interval.wall) {
    lag_.reset();
    lag_source_ = interval.wall;
    lag_fresh_.reset();
    learned_until_.reset();  // another meter may see other parts of the node
    learned_lag_.reset();
    counted_ = {};
    restore_lag();
  }
  const auto before = sample.time - std::chrono::duration_cast<Clock::SteadyTime::duration>(
                                        std::chrono::duration<double>(interval.seconds));
  for (const Correction& correction : corrections_) {
    lag_.correct(correction.watts, std::chrono::duration<double>(before - correction.from).count());
  }
  const bool alone = !known(Domain::kPackage);
  // Where CPUs are part of the rest, it is learned without what it draws for the known domains.
  const double losses = alone ? wall_watts_.losses() : 0;
  lag_.advance(interval.seconds, interval.even_joules, claims_.cores() * interval.seconds,
               std::abs(interval.timing.late - std::exchange(late_, interval.timing.late)));
  if (sources_[*interval.wall].info.method == Method::kDerived) {
    return;  // an estimate by what is known already
  }
  if (!reading.watts) {  // a counter of energy has no lag
    const double wall = interval.joules.at(index(Domain::kNode));
    node.observe(wall, interval.seconds, interval.utilisation);
    if (!all_known_) {
      return;
    }
    if (interval.known_source) {
      other.observe(wall - (1 + losses) * interval.even_joules, interval.seconds,
                    interval.utilisation);
    }
    counted_.known_watts += interval.even_joules;
    counted_.watts += wall - interval.even_joules;  // joules until the window is full
    counted_.window += interval.seconds;
    if (alone && counted_.window >= IdlePower::kWindow) {
      counted_.known_watts /= counted_.window;
      learn_units_from_wall(counted_, counted_.watts / counted_.window);
      counted_ = {};
    }
    return;
  }
  // First guesses, until something is learned.
  if (!node.watts()) {
    node.observe(*reading.watts, 1, interval.utilisation);
  }
  if (!other.watts() && interval.known_source && interval.seconds > 0) {
    other.observe(*reading.watts - (1 + losses) * interval.even_joules / interval.seconds, 1,
                  interval.utilisation);
  }
  take_wall_value(reading, sample.time);
  while (const auto aligned = lag_.next()) {
    const double use = claims_.cores_max() > 0
                           ? std::min(1.0, aligned->busy_cores / claims_.cores_max())
                           : std::numeric_limits<double>::quiet_NaN();
    node.observe(aligned->watts * aligned->seconds, aligned->seconds, use);
    if (alone) {
      learn_units_from_wall(*aligned, aligned->watts - aligned->known_watts);
    }
    if (interval.known_source) {
      other.observe((aligned->watts - (1 + losses) * aligned->known_watts) * aligned->seconds,
                    aligned->seconds, use);
    }
  }
}

}  // namespace ceems::exporter::energy
