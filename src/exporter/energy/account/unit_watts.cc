#include "exporter/energy/account/unit_watts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ceems::exporter::energy {
namespace {

/// Standard deviation of the initial assumptions, as a fraction of their values.
constexpr double kIdleDeviation = 0.5;
constexpr double kAverageDeviation = 0.7;
/// Stored values may have changed by this fraction.
constexpr double kRestoredDeviation = 0.02;
/// The same of watts per core, because the program may do something else by now.
constexpr double kRestoredCore = 0.1;
/// By what part of it the idle power may be off by which another was moved.
constexpr double kMovedDeviation = 0.2;
/// By how much idle power changes in a second, as a fraction of it.
constexpr double kIdleDrift = 0.0002;
/// By how much watts per core change in a second, as a fraction of the average: for a unit, and for
/// the average itself.
constexpr double kUnitDrift = 0.005;
constexpr double kAverageDrift = 0.0015;
/// Standard deviation of power that nothing explains, as is assumed in the beginning: as a fraction
/// of active power, and in watts.
constexpr double kNoise = 0.015;
constexpr double kNoiseWatts = 0.5;
/// Between which multiples of it the variance is learned, how many of it one window shows at most,
/// and by what part of that the estimate moves with each window.
constexpr double kMinNoise = 0.05;
constexpr double kMaxNoise = 10;
constexpr double kMaxNoiseSeen = 16;
constexpr double kNoiseStep = 0.01;
/// How far apart counters of energy and CPU time may be read, in seconds, which matters where power
/// changes.
constexpr double kUnevenSeconds = 0.03;
/// Larger deviations are cut to this many standard deviations.
constexpr double kMaxSurprise = 4;
constexpr double kMaxTurbo = 0.6;
constexpr double kMaxLosses = 0.4;
/// More of the idle power is not assumed to be what the first core wakes.
constexpr double kMaxWake = 0.2;
/// The least idle power in watts, and the least watts of a core, as a fraction of idle power by all
/// cores.
constexpr double kMinIdleWatts = 0.1;
constexpr double kMinCoreWatts = 0.05;

double squared(double value) {
  return value * value;
}

}  // namespace

void UnitWatts::restore(const State& state) {
  if (!mean_.empty()) {
    return;
  }
  const auto take = [](std::optional<PowerEstimate>& to, const std::optional<PowerEstimate>& from) {
    if (from && from->plausible()) {
      to = from;
    }
  };
  take(restored_.idle, state.idle);
  take(restored_.core, state.core);
  take(restored_.system, state.system);
  take(restored_.losses, state.losses);
}

PowerEstimate UnitWatts::estimate(std::size_t place) const {
  const double variance = covariance_[place * mean_.size() + place];
  return {.watts = mean_[place], .deviation = std::sqrt(std::max(variance, 0.0))};
}

UnitWatts::State UnitWatts::state() const {
  if (mean_.empty()) {
    return restored_;
  }
  PowerEstimate idle = estimate(kIdle);
  idle.watts = std::max(idle.watts, kMinIdleWatts);
  return {.idle = idle,
          .core = estimate(kAverage),
          .system = estimate(kSystem),
          .losses = assumed_.losses > 0 ? std::optional(estimate(kLosses)) : std::nullopt};
}

double UnitWatts::losses() const {
  const double assumed = restored_.losses ? restored_.losses->watts : assumed_.losses;
  return mean_.empty() ? assumed : mean_[kLosses];
}

std::optional<PowerEstimate> UnitWatts::of_unit(std::uint64_t key) const {
  const auto unit = units_.find(key);
  return unit == units_.end() || unit->second.place == kNone
             ? std::nullopt
             : std::optional(estimate(unit->second.place));
}

double UnitWatts::core_watts() const {
  const double idle = std::max(mean_[kIdle], kMinIdleWatts);
  return std::max(mean_[kAverage], kMinCoreWatts * idle / cores_max_);
}

void UnitWatts::move_idle(double watts) {
  if (!mean_.empty() && !fixed_idle_) {
    mean_[kIdle] = std::max(mean_[kIdle] + watts, kMinIdleWatts);
    covariance(kIdle, kIdle) += squared(kMovedDeviation * watts);
  }
}

void UnitWatts::take(const Interval& interval, std::span<const Use> units) {
  cores_max_ = interval.cores_max;
  const double resting = 1 - std::min(1.0, interval.cores / cores_max_);
  const auto beside_resting = [&](const auto& use) {
    return (use.beside_resting < 0 ? use.cores * resting : use.beside_resting) * interval.seconds;
  };
  beside_resting_ += beside_resting(interval);
  joules_ += interval.joules;
  known_joules_ += interval.known_joules;
  core_seconds_ += interval.cores * interval.seconds;
  awake_seconds_ +=
      (interval.awake < 0 ? std::min(1.0, interval.cores) : interval.awake) * interval.seconds;
  for (auto& [key, unit] : units_) {
    unit.alive = false;
  }
  for (const Use& use : units) {
    if (use.cores > 0) {
      const auto [found, added] = units_.try_emplace(use.key);
      Unit& unit = found->second;
      if (added && use.before != nullptr && use.before->plausible()) {
        unit.before = *use.before;
      }
      unit.core_seconds += use.cores * interval.seconds;
      unit.beside_resting += beside_resting(use);
      unit.alive = true;
    } else if (const auto unit = units_.find(use.key); unit != units_.end()) {
      unit->second.alive = true;
    }
  }
}

void UnitWatts::observe(const Interval& interval, std::span<const Use> units) {
  if (interval.joules > 0 && interval.seconds > 0 && interval.cores_max > 0 &&
      std::isfinite(interval.joules)) {
    take(interval, units);
    switch (window_.add(interval.seconds, interval.timing)) {
      case Window::Next::kSame:
        break;
      case Window::Next::kNew: {
        // Power that changed within the window is only as well known as the times of reading.
        const double watts = joules_ / window_.seconds();
        const double change = std::abs(watts - last_watts_.value_or(watts));
        close_window({.seconds = window_.seconds(),
                      .elapsed = window_.seconds(),
                      .unsure = kUnevenSeconds * change / window_.seconds()});
        last_watts_ = watts;
        restart_window();
        break;
      }
      case Window::Next::kGivenUp:
        restart_window();
        break;
    }
  }
  divide(interval.cores, units);
}

void UnitWatts::learn(const Interval& interval, std::span<const Use> units, double elapsed) {
  if (interval.joules > 0 && interval.seconds > 0 && interval.cores_max > 0 &&
      std::isfinite(interval.joules)) {
    take(interval, units);
    close_window({.seconds = interval.seconds, .elapsed = std::max(0.0, elapsed)});
    restart_window();
  }
}

void UnitWatts::divide(double cores, std::span<const Use> units) {
  const bool begun = !mean_.empty();
  const bool restored = !begun && restored_.core;
  const double average = begun ? core_watts() : restored ? restored_.core->watts : 1;
  const auto drawn = [&](double watts, double used) {
    return used * std::clamp(watts, kMinWatts * average, kMaxWatts * average);
  };
  drawn_.clear();
  total_watts_ = 0;
  for (const Use& use : units) {
    double watts = begun ? mean_[kAverage] : average;  // of one without a full window yet
    if (restored && use.before != nullptr && use.before->plausible()) {
      watts = use.before->watts;
    }
    if (const auto unit = begun && use.cores > 0 ? units_.find(use.key) : units_.end();
        unit != units_.end()) {
      const std::size_t place = unit->second.beyond           ? kSystem
                                : unit->second.place == kNone ? kAverage
                                                              : unit->second.place;
      watts = mean_[place];
    }
    drawn_.push_back(drawn(watts, use.cores));
    total_watts_ += drawn_.back();
    cores -= use.cores;
  }
  const double system = begun                          ? mean_[kSystem]
                        : restored && restored_.system ? restored_.system->watts
                                                       : average;
  total_watts_ += drawn(system, std::max(0.0, cores));
}

void UnitWatts::close_window(const Past& past) {
  // Units' counters are read at another moment than the CPUs' counters, which are the right ones.
  double by_units = 0;
  double resting_by_units = 0;
  for (const auto& [key, unit] : units_) {
    by_units += unit.core_seconds;
    resting_by_units += unit.beside_resting;
  }
  if (by_units > core_seconds_) {
    for (auto& [key, unit] : units_) {
      unit.core_seconds *= core_seconds_ / by_units;
      unit.beside_resting *= core_seconds_ / by_units;
    }
  }
  system_core_seconds_ = std::max(0.0, core_seconds_ - by_units);
  system_beside_resting_ =
      std::clamp(beside_resting_ - resting_by_units, 0.0, system_core_seconds_);
  const double watts = joules_ / past.seconds;
  const double cores = core_seconds_ / past.seconds;
  if (mean_.empty()) {
    begin(std::max(0.0, watts - losses() * known_joules_ / past.seconds), cores);
  }
  adopt_units();
  drift(past.elapsed);
  correct(watts, past);
}

void UnitWatts::restart_window() {
  std::erase_if(units_, [](const auto& entry) { return !entry.second.alive; });
  for (auto& [key, unit] : units_) {
    unit.core_seconds = 0;
    unit.beside_resting = 0;
  }
  joules_ = 0;
  known_joules_ = 0;
  core_seconds_ = 0;
  beside_resting_ = 0;
  awake_seconds_ = 0;
  window_.restart();
}

void UnitWatts::begin(double watts, double cores) {
  const double use = std::min(1.0, cores / cores_max_);
  const double slope = (1 - assumed_.full_load_idle) / assumed_.full_load_idle;
  const double assumed = watts / (1 + slope * use * (1 + assumed_.turbo * (1 - use)));
  double idle = assumed;
  double deviation = kIdleDeviation * idle;
  if (fixed_idle_) {
    idle = *fixed_idle_;
    deviation = 0;
  } else if (restored_.idle) {
    idle = std::min(restored_.idle->watts, watts);
    deviation = std::hypot(restored_.idle->deviation, kRestoredDeviation * idle);
  }
  const double core = assumed * slope / cores_max_;
  const double wake = std::min(assumed_.wake_watts, kMaxWake * idle);
  mean_ = {idle, core, wake, assumed_.turbo, assumed_.losses, core};
  covariance_.assign(kFixed * kFixed, 0);
  covariance(kIdle, kIdle) = squared(deviation);
  covariance(kAverage, kAverage) = squared(kAverageDeviation * core);
  covariance(kWake, kWake) = squared(wake);
  covariance(kTurbo, kTurbo) = squared(assumed_.turbo_deviation);
  covariance(kLosses, kLosses) = squared(assumed_.losses_deviation);
  covariance(kSystem, kAverage) = covariance(kAverage, kSystem) = covariance(kAverage, kAverage);
  covariance(kSystem, kSystem) = covariance(kAverage, kAverage) + squared(assumed_.spread * core);
  const auto replace = [this](std::size_t place, const std::optional<PowerEstimate>& by) {
    if (by) {
      mean_[place] = by->watts;
      covariance(kSystem, kAverage) = covariance(kAverage, kSystem) = 0;
      covariance(place, place) = squared(std::hypot(by->deviation, kRestoredCore * by->watts));
    }
  };
  replace(kAverage, restored_.core);
  replace(kSystem, restored_.system);
  if (restored_.losses && assumed_.losses > 0) {
    mean_[kLosses] = restored_.losses->watts;
    covariance(kLosses, kLosses) = squared(restored_.losses->deviation);
  }
}

/// Gives units that used something a place in the state, and takes it from those that are gone.
void UnitWatts::adopt_units() {
  const std::size_t old = mean_.size();
  std::vector<std::size_t> from = {kIdle, kAverage, kWake, kTurbo, kLosses, kSystem};
  bool changed = false;
  for (auto& [key, unit] : units_) {
    if (from.size() == kFixed + kMaxUnits) {
      system_core_seconds_ += std::exchange(unit.core_seconds, 0);
      system_beside_resting_ += std::exchange(unit.beside_resting, 0);
      unit.place = kNone;
      unit.beyond = true;
      continue;
    }
    from.push_back(unit.place);
    changed = changed || unit.place != from.size() - 1;
    unit.place = from.size() - 1;
    unit.beyond = false;
  }
  const std::size_t count = from.size();
  if (!changed && count == old) {
    return;
  }
  std::vector<double> mean(count);
  std::vector<double> matrix(count * count);
  std::vector<std::optional<PowerEstimate>> before(count);
  for (const auto& [key, unit] : units_) {
    if (unit.place != kNone) {
      before[unit.place] = unit.before;
    }
  }
  const double spread = squared(assumed_.spread * core_watts());
  const auto source = [&from](std::size_t i) { return from[i] == kNone ? kAverage : from[i]; };
  for (std::size_t i = 0; i < count; ++i) {
    mean[i] = mean_[source(i)];
    for (std::size_t j = 0; j < count; ++j) {
      matrix[i * count + j] = covariance(source(i), source(j));
    }
    if (from[i] == kNone) {
      matrix[i * count + i] += spread;
    }
  }
  for (std::size_t i = kFixed; i < count; ++i) {
    const std::optional<PowerEstimate>& known = before[i];
    if (from[i] == kNone && known) {
      mean[i] = known->watts;
      for (std::size_t j = 0; j < count; ++j) {
        matrix[i * count + j] = matrix[j * count + i] = 0;
      }
      matrix[i * count + i] = squared(std::hypot(known->deviation, kRestoredCore * mean[i]));
    }
  }
  mean_ = std::move(mean);
  covariance_ = std::move(matrix);
}

void UnitWatts::drift(double seconds) {
  const double core = core_watts();
  covariance(kIdle, kIdle) += fixed_idle_ ? 0 : squared(kIdleDrift * mean_[kIdle]) * seconds;
  covariance(kAverage, kAverage) += squared(kAverageDrift * core) * seconds;
  for (std::size_t i = kSystem; i < mean_.size(); ++i) {
    covariance(i, i) += squared(kUnitDrift * core) * seconds;
  }
}

/// How the power of the window depends on each part of the state. Returns the expected power.
double UnitWatts::expect(double seconds) {
  slope_.assign(mean_.size(), 0);
  slope_[kIdle] = 1;
  slope_[kWake] = awake_seconds_ / seconds;
  slope_[kLosses] = known_joules_ / seconds;
  double active = 0;
  double by_turbo = 0;  // the only part of the state that power is not linear in
  const auto add = [&](std::size_t place, double core_seconds, double beside_resting) {
    slope_[place] = (core_seconds + mean_[kTurbo] * beside_resting) / seconds;
    active += mean_[place] * slope_[place];
    by_turbo += mean_[place] * beside_resting / seconds;
  };
  add(kSystem, system_core_seconds_, system_beside_resting_);
  for (const auto& [key, unit] : units_) {
    if (unit.place != kNone) {
      add(unit.place, unit.core_seconds, unit.beside_resting);
    }
  }
  slope_[kTurbo] = std::max(by_turbo, 0.0);
  return mean_[kIdle] + slope_[kWake] * mean_[kWake] + slope_[kLosses] * mean_[kLosses] + active;
}

void UnitWatts::correct(double watts, const Past& past) {
  const double expected = expect(past.seconds);
  const std::size_t count = mean_.size();
  gain_.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (slope_[i] != 0) {
      for (std::size_t j = 0; j < count; ++j) {
        gain_[j] += slope_[i] * covariance(i, j);  // the matrix is symmetric
      }
    }
  }
  double uncertain = 0;  // variance of the expected power
  for (std::size_t i = 0; i < count; ++i) {
    uncertain += gain_[i] * slope_[i];
  }
  uncertain = std::max(uncertain, 0.0);  // whatever rounding does
  const double uneven = squared(past.unsure);
  const double usual = squared(kNoise * std::max(0.0, watts - mean_[kIdle]) + kNoiseWatts);
  const double variance = uncertain + noise_ * usual + uneven;
  const double most = kMaxSurprise * std::sqrt(variance);
  const double surprise = std::clamp(watts - expected, -most, most);
  for (std::size_t i = 0; i < count; ++i) {
    mean_[i] += gain_[i] / variance * surprise;
    for (std::size_t j = 0; j < count; ++j) {
      covariance(i, j) -= gain_[i] * gain_[j] / variance;
    }
  }
  for (std::size_t i = kAverage; i < count; ++i) {
    mean_[i] = std::max(mean_[i], 0.0);  // nothing draws less
  }
  mean_[kTurbo] = std::min(mean_[kTurbo], kMaxTurbo);
  mean_[kLosses] = std::min(mean_[kLosses], kMaxLosses);
  learn_noise((squared(surprise) - uncertain) / std::max(usual, uneven));
}

/// `seen`: the square of what the last window did not explain, as a multiple of the usual noise.
void UnitWatts::learn_noise(double seen) {
  noise_ += (std::clamp(seen, 0.0, kMaxNoiseSeen) - noise_) * kNoiseStep;
  noise_ = std::clamp(noise_, kMinNoise, kMaxNoise);
}

}  // namespace ceems::exporter::energy
