#include "exporter/energy/account/unit_watts.h"

#include <algorithm>
#include <cmath>

namespace ceems::exporter::energy {
namespace {

/// Standard deviation of a new unit's watts, as a fraction of the average.
constexpr double kSpread = 0.4;
/// By how much the watts of a unit change in a second, as a fraction of the average.
constexpr double kDrift = 0.005;
/// Standard deviation of power that is not explained by use: as a fraction of it, and in watts.
constexpr double kNoise = 0.01;
constexpr double kNoiseWatts = 0.5;
/// A deviation of more standard deviations than this counts as so many.
constexpr double kMaxSurprise = 4;
/// The average is over about as many seconds.
constexpr double kAverageSeconds = 300;
/// With less use than this there is nothing to learn.
constexpr double kMinCores = 0.01;

double squared(double value) {
  return value * value;
}

/// `to` += `factor` * `from`
void add_scaled(std::span<double> to, double factor, std::span<const double> from) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] += factor * from[i];
  }
}

}  // namespace

void UnitWatts::adopt(std::span<const Use> units) {
  constexpr std::size_t kNew = std::size_t(-1);
  const std::size_t count = units.size() + 1;
  const std::size_t old = keys_.size();
  std::vector<std::size_t> before(count, kNew);
  before[0] = old > 0 ? 0 : kNew;
  for (std::size_t i = 1; i < count; ++i) {
    if (const auto place = places_.find(units[i - 1].key); place != places_.end()) {
      before[i] = place->second;
    }
  }
  std::vector<double> mean(count, average_);
  std::vector<double> covariance(count * count, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    if (before[i] == kNew) {
      covariance[i * count + i] = squared(kSpread * average_);
      continue;
    }
    mean[i] = mean_[before[i]];
    for (std::size_t j = 0; j < count; ++j) {
      if (before[j] != kNew) {
        covariance[i * count + j] = covariance_[before[i] * old + before[j]];
      }
    }
  }
  keys_.assign(1, 0);
  places_.clear();
  for (std::size_t i = 1; i < count; ++i) {
    keys_.push_back(units[i - 1].key);
    places_.emplace(keys_.back(), i);
  }
  mean_ = std::move(mean);
  covariance_ = std::move(covariance);
}

void UnitWatts::learn(double active_watts, double seconds) {
  const std::size_t count = mean_.size();
  const auto row = [&](std::size_t i) { return std::span(covariance_).subspan(i * count, count); };
  const double drift = squared(kDrift * average_) * seconds;
  gain_.assign(count, 0.0);
  double expected = 0;
  for (std::size_t i = 0; i < count; ++i) {
    row(i)[i] += drift;
    if (cores_[i] > 0) {
      add_scaled(gain_, cores_[i], row(i));  // the matrix is symmetric
      expected += mean_[i] * cores_[i];
    }
  }
  double variance = squared(kNoise * active_watts + kNoiseWatts);
  for (std::size_t i = 0; i < count; ++i) {
    variance += gain_[i] * cores_[i];
  }
  const double most = kMaxSurprise * std::sqrt(variance);
  const double surprise = std::clamp(active_watts - expected, -most, most);
  for (std::size_t i = 0; i < count; ++i) {
    mean_[i] += gain_[i] / variance * surprise;
    add_scaled(row(i), -gain_[i] / variance, gain_);
  }
}

void UnitWatts::observe(double active_watts,
                        double seconds,
                        double system_cores,
                        std::span<const Use> units) {
  const std::span<const Use> own = units.first(std::min(units.size(), kMaxUnits));
  double cores = system_cores;
  for (const Use& unit : units) {
    cores += unit.cores;
  }
  const bool informative = cores > kMinCores && active_watts > 0 && seconds > 0;
  if (informative) {
    const double now = active_watts / cores;
    const double step = average_ > 0 ? std::min(1.0, seconds / kAverageSeconds) : 1;
    if (average_ <= 0) {
      keys_.clear();  // units that were seen before start with the average
      places_.clear();
    }
    average_ += (now - average_) * step;
  }
  if (keys_.empty() || !std::ranges::equal(own, std::span(keys_).subspan(1), {}, &Use::key)) {
    adopt(own);
  }
  cores_.assign(1, cores);
  for (const Use& unit : own) {
    cores_.push_back(unit.cores);
    cores_[0] -= unit.cores;
  }
  cores_[0] = std::max(cores_[0], 0.0);
  if (informative) {
    learn(active_watts, seconds);
  }
  const auto drawn = [this](std::size_t place, double used) {
    return average_ <= 0
               ? used
               : used * std::clamp(mean_[place], kMinWatts * average_, kMaxWatts * average_);
  };
  watts_.clear();
  total_watts_ = drawn(0, system_cores);
  for (std::size_t i = 0; i < units.size(); ++i) {
    watts_.push_back(drawn(i < own.size() ? i + 1 : 0, units[i].cores));
    total_watts_ += watts_.back();
  }
}

}  // namespace ceems::exporter::energy
