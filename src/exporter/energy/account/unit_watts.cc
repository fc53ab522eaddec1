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
/// By how much watts per core of a unit change in a second, as a fraction of the average.
constexpr double kUnitDrift = 0.005;
/// Standard deviation of power that nothing explains, as is assumed in the beginning: as a fraction
/// of active power, and in watts.
constexpr double kNoise = 0.015;
constexpr double kNoiseWatts = 0.5;
/// Between which multiples of it the variance is learned, and how many of it one window shows at
/// most.
constexpr double kMinNoise = 0.05;
constexpr double kMaxNoise = 10;
constexpr double kMaxNoiseSeen = 16;
/// By what part of themselves power and use may differ between windows in which nothing changes.
constexpr double kAlike = 0.03;
constexpr double kAlikeCores = 0.25;  // of one unit
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

/// A unit has watts of its own as far as less than kUntold is left of their assumed variance, and
/// all of them from kTold on.
constexpr double kUntold = 0.9;
constexpr double kTold = 0.6;

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

/// How far each unit's watts per core are known, by how much is left of the assumed variance. What
/// was known stays so: while nothing changes the variance grows, but the watts are the best guess.
void UnitWatts::note_trust() {
  for (auto& [key, unit] : units_) {
    if (unit.place == kNone) {
      continue;
    }
    const double all = covariance(unit.place, unit.place);
    // One whose watts are known, beside an average that is not, is known.
    const double own =
        std::min(all, all - 2 * covariance(unit.place, kAverage) + covariance(kAverage, kAverage));
    unit.trust = std::max(unit.trust,
                          std::clamp((kUntold - own / unit.assumed) / (kUntold - kTold), 0.0, 1.0));
  }
}

double UnitWatts::core_watts() const {
  const double idle = std::max(mean_[kIdle], kMinIdleWatts);
  return std::max(mean_[kAverage], kMinCoreWatts * idle / cores_max_);
}

void UnitWatts::move_idle(double watts) {
  if (!mean_.empty() && !fixed_idle_) {
    mean_[kIdle] = std::max(mean_[kIdle] + watts, kMinIdleWatts);
    covariance(kIdle, kIdle) += squared(kMovedDeviation * watts);
    forget_steady();  // it holds power from before
  }
}

void UnitWatts::Share::add(const Share& other) {
  core_seconds += other.core_seconds;
  beside_resting += other.beside_resting;
}

void UnitWatts::Sums::add(const Sums& other) {
  windows += other.windows;
  seconds += other.seconds;
  elapsed += other.elapsed;
  joules += other.joules;
  known_joules += other.known_joules;
  awake_seconds += other.awake_seconds;
  all.add(other.all);
  system.add(other.system);
}

void UnitWatts::take(const Interval& interval, std::span<const Use> units) {
  cores_max_ = interval.cores_max;
  const double resting = 1 - std::min(1.0, interval.cores / cores_max_);
  const auto share = [&](const auto& use) {
    const double beside = use.beside_resting < 0 ? use.cores * resting : use.beside_resting;
    return Share{.core_seconds = use.cores * interval.seconds,
                 .beside_resting = beside * interval.seconds};
  };
  sums_.all.add(share(interval));
  sums_.joules += interval.joules;
  sums_.known_joules += interval.known_joules;
  sums_.awake_seconds +=
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
      unit.window.add(share(use));
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
      case Window::Next::kNew:
        close_window(window_.seconds(), window_.seconds());
        break;
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
    close_window(interval.seconds, std::max(0.0, elapsed));
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
  trusts_.clear();
  double unknown_cores = 0;
  double unknown_watts = 0;
  for (const Use& use : units) {
    double watts = begun ? mean_[kAverage] : average;  // of one without a full window yet
    double known = 1;
    if (restored && use.before != nullptr && use.before->plausible()) {
      watts = use.before->watts;
    }
    if (const auto unit = begun && use.cores > 0 ? units_.find(use.key) : units_.end();
        unit != units_.end()) {
      const bool placed = unit->second.place != kNone;
      watts = mean_[unit->second.beyond ? kSystem : placed ? unit->second.place : kAverage];
      known = placed && assumed_.doubts ? unit->second.trust : 1;
    }
    drawn_.push_back(drawn(watts, use.cores));
    trusts_.push_back(known);
    unknown_cores += (1 - known) * use.cores;
    unknown_watts += (1 - known) * drawn_.back();
    cores -= use.cores;
  }
  total_watts_ = 0;
  for (std::size_t i = 0; i < drawn_.size(); ++i) {
    if (trusts_[i] < 1) {  // and so unknown_cores > 0
      drawn_[i] = trusts_[i] * drawn_[i] +
                  (1 - trusts_[i]) * units[i].cores * unknown_watts / unknown_cores;
    }
    total_watts_ += drawn_[i];
  }
  const double system = begun                          ? mean_[kSystem]
                        : restored && restored_.system ? restored_.system->watts
                                                       : average;
  total_watts_ += drawn(system, std::max(0.0, cores));
}

void UnitWatts::close_window(double seconds, double elapsed) {
  sums_.windows = 1;
  sums_.seconds = seconds;
  sums_.elapsed = elapsed;
  share_window();
  if (mean_.empty()) {
    const double known = losses() * sums_.known_joules / seconds;
    begin(std::max(0.0, sums_.joules / seconds - known), sums_.all.core_seconds / seconds);
  }
  adopt_units();
  const bool alike = like_before();
  if (alike) {
    steady_.add(sums_);
    for (auto& [key, unit] : units_) {
      unit.steady.add(unit.window);
    }
  }
  if (steady_.seconds > 0 && (!alike || steady_.seconds >= steady_length_)) {
    learn_from(steady_, &Unit::steady);
    forget_steady();
    steady_length_ = std::min(2 * steady_length_, kSteady);
  }
  if (!alike) {
    learn_from(sums_, &Unit::window);
    steady_length_ = assumed_.window;
  }
  note_trust();
  restart_window();
}

void UnitWatts::forget_steady() {
  steady_ = {};
  for (auto& [key, unit] : units_) {
    unit.steady = {};
  }
}

/// Divides what was busy among the units and the system. Units' counters are read at another moment
/// than the CPUs' counters, which are the right ones.
void UnitWatts::share_window() {
  Share by_units;
  for (const auto& [key, unit] : units_) {
    by_units.add(unit.window);
  }
  if (by_units.core_seconds > sums_.all.core_seconds) {
    const double part = sums_.all.core_seconds / by_units.core_seconds;
    for (auto& [key, unit] : units_) {
      unit.window.core_seconds *= part;
      unit.window.beside_resting *= part;
    }
  }
  sums_.system.core_seconds = std::max(0.0, sums_.all.core_seconds - by_units.core_seconds);
  sums_.system.beside_resting = std::clamp(sums_.all.beside_resting - by_units.beside_resting, 0.0,
                                           sums_.system.core_seconds);
}

/// Whether power and use are about what they were in the window before.
bool UnitWatts::like_before() {
  double moved = 0;  // busy cores
  bool alike = true;
  const auto move = [&](double& before, double core_seconds) {
    const double cores = core_seconds / sums_.seconds;
    const double by = std::abs(cores - before);
    alike = alike && by <= std::max(kAlike * before, kAlikeCores);
    moved += by;
    before = cores;
  };
  move(last_system_cores_, sums_.system.core_seconds);
  for (auto& [key, unit] : units_) {
    move(unit.cores, unit.window.core_seconds);
  }
  const double watts = sums_.joules / sums_.seconds;
  const double known = sums_.known_joules / sums_.seconds;
  const double by = std::abs(watts - last_watts_.value_or(0)) + std::abs(known - last_known_watts_);
  last_watts_ = watts;
  last_known_watts_ = known;
  return alike && by <= kAlike * watts && moved <= kAlike * sums_.all.core_seconds / sums_.seconds;
}

void UnitWatts::restart_window() {
  std::erase_if(units_, [](const auto& entry) { return !entry.second.alive; });
  for (auto& [key, unit] : units_) {
    unit.window = {};
  }
  sums_ = {};
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
  const double spread = squared(assumed_.spread * core_watts());
  std::vector<std::size_t> from = {kIdle, kAverage, kWake, kTurbo, kLosses, kSystem};
  bool changed = false;
  for (auto& [key, unit] : units_) {
    if (from.size() == kFixed + kMaxUnits) {
      sums_.system.add(std::exchange(unit.window, {}));
      steady_.system.add(std::exchange(unit.steady, {}));
      unit.place = kNone;
      unit.beyond = true;
      continue;
    }
    from.push_back(unit.place);
    unit.assumed = unit.place == kNone ? spread : unit.assumed;
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
  for (std::size_t i = kSystem; i < mean_.size(); ++i) {
    covariance(i, i) += squared(kUnitDrift * core) * seconds;
  }
}

void UnitWatts::learn_from(const Sums& seen, Share Unit::* share) {
  drift(seen.elapsed);
  correct(seen.joules / seen.seconds, seen, share);
}

/// How the power depends on each part of the state. Returns the expected power.
double UnitWatts::expect(const Sums& seen, Share Unit::* share) {
  slope_.assign(mean_.size(), 0);
  slope_[kIdle] = 1;
  slope_[kWake] = seen.awake_seconds / seen.seconds;
  slope_[kLosses] = seen.known_joules / seen.seconds;
  double active = 0;
  double by_turbo = 0;  // the only part of the state that power is not linear in
  const auto add = [&](std::size_t place, const Share& used) {
    slope_[place] = (used.core_seconds + mean_[kTurbo] * used.beside_resting) / seen.seconds;
    active += mean_[place] * slope_[place];
    by_turbo += mean_[place] * used.beside_resting / seen.seconds;
  };
  add(kSystem, seen.system);
  for (const auto& [key, unit] : units_) {
    if (unit.place != kNone) {
      add(unit.place, unit.*share);
    }
  }
  slope_[kTurbo] = std::max(by_turbo, 0.0);
  return mean_[kIdle] + slope_[kWake] * mean_[kWake] + slope_[kLosses] * mean_[kLosses] + active;
}

void UnitWatts::correct(double watts, const Sums& seen, Share Unit::* share) {
  const double expected = expect(seen, share);
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
  const double usual =
      squared(kNoise * std::max(0.0, watts - mean_[kIdle]) + kNoiseWatts) / seen.windows;
  const double variance = uncertain + noise_ * usual;
  const double most = kMaxSurprise * std::sqrt(variance);
  const double surprise = std::clamp(watts - expected, -most, most);
  for (std::size_t i = 0; i < count; ++i) {
    mean_[i] += gain_[i] / variance * surprise;
    for (std::size_t j = 0; j < count; ++j) {
      covariance(i, j) -= gain_[i] * gain_[j] / variance;
    }
  }
  for (std::size_t i = kAverage; i < count; ++i) {
    bound(i, within_bounds(i, mean_[i]));
  }
  for (std::size_t i = kAverage; i < count; ++i) {
    mean_[i] = within_bounds(i, mean_[i]);  // a later one may have moved it out again
  }
  learn_noise((squared(surprise) - uncertain) / usual, seen.windows);
}

/// Brings an estimate that has left its bounds back, and all others with it by as much as they
/// depend on it, as if it had been measured (D. Simon, "Kalman filtering with state constraints",
/// IET Control Theory & Applications 4, 2010). Cut alone, what it loses would go to whichever the
/// next window asks first.
void UnitWatts::bound(std::size_t place, double to) {
  const double passed = to - mean_[place];
  const double variance = covariance(place, place);
  if (passed != 0 && variance > 0) {
    for (std::size_t i = 0; i < mean_.size(); ++i) {
      mean_[i] += covariance(i, place) / variance * passed;
    }
  }
  mean_[place] = to;
}

double UnitWatts::within_bounds(std::size_t place, double value) {
  switch (place) {
    case kTurbo:
      return std::clamp(value, 0.0, kMaxTurbo);
    case kLosses:
      return std::clamp(value, 0.0, kMaxLosses);
    default:
      return std::max(value, 0.0);  // nothing draws less
  }
}

/// `seen`: the square of what the last window did not explain, as a multiple of the usual noise.
void UnitWatts::learn_noise(double seen, double windows) {
  noise_ += (std::clamp(seen, 0.0, kMaxNoiseSeen) - noise_) *
            (1 - std::pow(1 - assumed_.noise_step, windows));
  noise_ = std::clamp(noise_, kMinNoise, kMaxNoise);
}

}  // namespace ceems::exporter::energy
