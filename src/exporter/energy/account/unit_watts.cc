#include "exporter/energy/account/unit_watts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ceems::exporter::energy {
namespace {

/// Standard deviation of what is assumed in the beginning, as a fraction of it.
constexpr double kIdleDeviation = 0.5;
constexpr double kAverageDeviation = 0.7;
/// What was stored may have changed by this fraction of it.
constexpr double kRestoredDeviation = 0.02;
/// By how much idle power changes in a second, as a fraction of it.
constexpr double kIdleDrift = 0.0002;
/// By how much watts per core change in a second, as a fraction of the average: those of a unit,
/// and the average itself.
constexpr double kUnitDrift = 0.005;
constexpr double kAverageDrift = 0.0015;
/// Standard deviation of power that nothing explains: as a fraction of active power, and in watts.
constexpr double kNoise = 0.015;
constexpr double kNoiseWatts = 0.5;
/// A deviation of more standard deviations than this counts as so many.
constexpr double kMaxSurprise = 4;
constexpr double kMaxTurbo = 0.6;
/// The least idle power in watts, and the least watts of a core, as a fraction of idle power by all
/// cores.
constexpr double kMinIdleWatts = 0.1;
constexpr double kMinCoreWatts = 0.05;

double squared(double value) {
  return value * value;
}

}  // namespace

void UnitWatts::restore(const IdleEstimate& estimate) {
  if (mean_.empty() && estimate.plausible()) {
    restored_ = estimate;
  }
}

std::optional<IdleEstimate> UnitWatts::idle() const {
  if (mean_.empty()) {
    return restored_;
  }
  return IdleEstimate{.watts = std::max(mean_[kIdle], kMinIdleWatts),
                      .deviation = std::sqrt(std::max(covariance_[kIdle], 0.0))};
}

double UnitWatts::core_watts() const {
  const double idle = std::max(mean_[kIdle], kMinIdleWatts);
  return std::max(mean_[kAverage], kMinCoreWatts * idle / cores_max_);
}

void UnitWatts::observe(const Interval& interval, std::span<const Use> units) {
  if (interval.joules > 0 && interval.seconds > 0 && interval.cores_max > 0 &&
      std::isfinite(interval.joules)) {
    cores_max_ = interval.cores_max;
    joules_ += interval.joules;
    seconds_ += interval.seconds;
    system_core_seconds_ += interval.system_cores * interval.seconds;
    for (auto& [key, unit] : units_) {
      unit.alive = false;
    }
    for (const Use& use : units) {
      if (use.cores > 0) {
        Unit& unit = units_[use.key];
        unit.core_seconds += use.cores * interval.seconds;
        unit.alive = true;
      } else if (const auto unit = units_.find(use.key); unit != units_.end()) {
        unit->second.alive = true;
      }
    }
    if (seconds_ >= kWindow) {
      close_window();
    }
  }
  divide(interval.system_cores, units);
}

/// Computes what each unit drew.
void UnitWatts::divide(double system_cores, std::span<const Use> units) {
  const double average = mean_.empty() ? 1 : core_watts();
  const auto drawn = [&](std::size_t place, double cores) {
    return cores *
           (mean_.empty() ? 1 : std::clamp(mean_[place], kMinWatts * average, kMaxWatts * average));
  };
  drawn_.clear();
  total_watts_ = drawn(kSystem, system_cores);
  for (const Use& use : units) {
    std::size_t place = kAverage;  // of one that has not been in a full window yet
    if (const auto unit = use.cores > 0 ? units_.find(use.key) : units_.end();
        unit != units_.end()) {
      place = unit->second.beyond           ? kSystem
              : unit->second.place == kNone ? kAverage
                                            : unit->second.place;
    }
    drawn_.push_back(drawn(place, use.cores));
    total_watts_ += drawn_.back();
  }
}

void UnitWatts::close_window() {
  double cores = system_core_seconds_ / seconds_;
  for (const auto& [key, unit] : units_) {
    cores += unit.core_seconds / seconds_;
  }
  const double watts = joules_ / seconds_;
  if (mean_.empty()) {
    begin(watts, cores);
  }
  adopt_units();
  drift();
  correct(watts, cores);
  std::erase_if(units_, [](const auto& entry) { return !entry.second.alive; });
  for (auto& [key, unit] : units_) {
    unit.core_seconds = 0;
  }
  joules_ = 0;
  seconds_ = 0;
  system_core_seconds_ = 0;
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
  } else if (restored_) {
    idle = std::min(restored_->watts, watts);
    deviation = std::hypot(restored_->deviation, kRestoredDeviation * idle);
  }
  const double core = assumed * slope / cores_max_;
  mean_ = {idle, core, assumed_.wake * idle, assumed_.turbo, core};
  covariance_.assign(kFixed * kFixed, 0);
  covariance(kIdle, kIdle) = squared(deviation);
  covariance(kAverage, kAverage) = squared(kAverageDeviation * core);
  covariance(kWake, kWake) = squared(assumed_.wake_deviation * idle);
  covariance(kTurbo, kTurbo) = squared(assumed_.turbo_deviation);
  covariance(kSystem, kAverage) = covariance(kAverage, kSystem) = covariance(kAverage, kAverage);
  covariance(kSystem, kSystem) = covariance(kAverage, kAverage) + squared(assumed_.spread * core);
}

/// Gives units that used something a place in the state, and takes it from those that are gone.
void UnitWatts::adopt_units() {
  const std::size_t old = mean_.size();
  std::vector<std::size_t> from = {kIdle, kAverage, kWake, kTurbo, kSystem};
  bool changed = false;
  for (auto& [key, unit] : units_) {
    if (from.size() == kFixed + kMaxUnits) {
      system_core_seconds_ += std::exchange(unit.core_seconds, 0);
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
  mean_ = std::move(mean);
  covariance_ = std::move(matrix);
}

void UnitWatts::drift() {
  const double core = core_watts();
  covariance(kIdle, kIdle) += fixed_idle_ ? 0 : squared(kIdleDrift * mean_[kIdle]) * seconds_;
  covariance(kAverage, kAverage) += squared(kAverageDrift * core) * seconds_;
  for (std::size_t i = kSystem; i < mean_.size(); ++i) {
    covariance(i, i) += squared(kUnitDrift * core) * seconds_;
  }
}

void UnitWatts::correct(double watts, double cores) {
  const std::size_t count = mean_.size();
  const double resting = 1 - std::min(1.0, cores / cores_max_);
  const double turbo = 1 + mean_[kTurbo] * resting;
  slope_.assign(count, 0);
  slope_[kIdle] = 1;
  slope_[kWake] = std::min(1.0, cores);
  slope_[kSystem] = turbo * system_core_seconds_ / seconds_;
  for (const auto& [key, unit] : units_) {
    if (unit.place != kNone) {
      slope_[unit.place] = turbo * unit.core_seconds / seconds_;
    }
  }
  double active = 0;
  for (std::size_t i = kSystem; i < count; ++i) {
    active += mean_[i] * slope_[i];
  }
  const double expected = mean_[kIdle] + slope_[kWake] * mean_[kWake] + active;
  // The only part of the state that power is not linear in.
  slope_[kTurbo] = std::max(active, 0.0) / turbo * resting;
  gain_.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (slope_[i] != 0) {
      for (std::size_t j = 0; j < count; ++j) {
        gain_[j] += slope_[i] * covariance(i, j);  // the matrix is symmetric
      }
    }
  }
  const double noise = squared(kNoise * std::max(0.0, watts - mean_[kIdle]) + kNoiseWatts);
  double variance = noise;
  for (std::size_t i = 0; i < count; ++i) {
    variance += gain_[i] * slope_[i];
  }
  variance = std::max(variance, noise);  // whatever rounding does
  const double most = kMaxSurprise * std::sqrt(variance);
  const double surprise = std::clamp(watts - expected, -most, most);
  for (std::size_t i = 0; i < count; ++i) {
    mean_[i] += gain_[i] / variance * surprise;
    for (std::size_t j = 0; j < count; ++j) {
      covariance(i, j) -= gain_[i] * gain_[j] / variance;
    }
  }
  mean_[kTurbo] = std::clamp(mean_[kTurbo], 0.0, kMaxTurbo);
}

}  // namespace ceems::exporter::energy
