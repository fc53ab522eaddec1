#include "exporter/energy/meter/source_gate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/log.h"

namespace ceems::exporter::energy {
namespace {

/// All ones in 15, 16, 31 and 32 bits. 8 and 10 bits would be powers that nodes draw.
constexpr std::array<double, 4> kAllOnes{32'767, 65'535, 2'147'483'647, 4'294'967'295};
/// Watts, tenths, milliwatts and microwatts.
constexpr std::array<double, 4> kUnits{1, 1e-1, 1e-3, 1e-6};

/// A load that changed by less, in watts or as a part of the power, need not show.
constexpr double kLeastMove = 20;
constexpr double kLeastMovePart = 0.08;
/// The load that belongs to a value is known when its mean has followed.
constexpr auto kSettled = std::chrono::seconds(60);
constexpr int kMovedReadings = 5;
/// The model's watts say less than the watts of meters.
constexpr double kModelTrust = 2;
/// A reading that comes late says little about the time before it.
constexpr double kMaxStep = 30;
/// Readings that differ by less confirm each other.
constexpr double kAgree = 1.5;
/// A cap and a rating are for the mean of some seconds.
constexpr double kCapacityMargin = 1.25;

bool is_sentinel(double watts) {
  return std::ranges::any_of(kAllOnes, [watts](double ones) {
    return std::ranges::any_of(kUnits, [watts, ones](double unit) {
      return std::abs(watts - ones * unit) <= 1e-9 * watts;
    });
  });
}

bool differ(double a, double b, double factor) {
  return a > factor * b || b > factor * a;
}

}  // namespace

std::string_view to_string(Doubt doubt) {
  constexpr std::array<std::string_view, kDoubtCount> kNames{
      "invalid", "sentinel", "too_high", "too_low", "jump", "frozen", "mirrored", "unreadable"};
  return kNames.at(static_cast<std::size_t>(doubt));
}

std::string_view explain(Doubt doubt) {
  constexpr std::array<std::string_view, kDoubtCount> kWords{
      "it shows zero or no valid power",
      "all its bits are set, so it has no value",
      "it shows more than this node can draw",
      "it shows less than a node or the parts of this one draw",
      "it jumped, and the next reading did not confirm it",
      "it stands still while the node works",
      "it shows the counter of another source",
      "it cannot be read"};
  return kWords.at(static_cast<std::size_t>(doubt));
}

std::optional<Doubt> judge_watts(double watts, double most_watts) {
  if (!std::isfinite(watts) || watts <= 0) {
    return Doubt::kInvalid;
  }
  if (is_sentinel(watts)) {
    return Doubt::kSentinel;
  }
  return watts > most_watts ? std::optional(Doubt::kTooHigh) : std::nullopt;
}

void PowerLine::add(double load, double watts, double seconds) {
  seconds_ = std::min(seconds_ + seconds, kMemory);
  const double part = seconds_ > 0 ? std::min(1.0, seconds / seconds_) : 0;
  const double more_load = load - load_;
  const double more_watts = watts - watts_;
  load_ += part * more_load;
  watts_ += part * more_watts;
  variance_ = (1 - part) * (variance_ + part * more_load * more_load);
  covariance_ = (1 - part) * (covariance_ + part * more_load * more_watts);
}

double PowerLine::at(double load, double slope, double spread) const {
  const double weight = spread * spread;
  const double sum = variance_ + weight;
  const double learned = sum > 0 ? (covariance_ + weight * slope) / sum : slope;
  return std::max(0.0, watts_ + std::max(0.0, learned) * (load - load_));
}

bool SourceGate::believes(const PowerReading& reading) {
  const double capacity =
      reading.capacity_watts.value_or(std::numeric_limits<double>::infinity()) * kCapacityMargin;
  auto doubt = judge_watts(reading.watts, std::min(expected_.most_watts, capacity));
  if (!doubt &&
      reading.watts < std::max(expected_.least_watts, kLeastOfParts * expected_.parts_watts)) {
    doubt = Doubt::kTooLow;
  }
  if (!doubt && stands_still(reading)) {
    doubt = Doubt::kFrozen;
  }
  if (!doubt && jumps(reading.watts)) {
    doubt = Doubt::kJump;
  }
  if (!doubt) {
    refused_since_.reset();
    return true;
  }
  refused_since_ = refused_since_.value_or(reading.time);
  exclude(*doubt);
  return false;
}

/// A meter with steps of some watts may repeat itself for hours at a constant load, so only a load
/// that changed and stays so is evidence.
bool SourceGate::stands_still(const PowerReading& reading) {
  const auto& load = expected_.load_watts;
  if (reading.watts != run_.watts) {
    longest_ = std::max(longest_, run_.moved_seconds);
    changed_ = changed_ || !std::isnan(run_.watts);
    run_ = {.watts = reading.watts,
            .load = {},
            .first_load = expected_.load_now,
            .begin = reading.time,
            .last = reading.time};
    frozen_ = stale_ = false;
    return false;
  }
  const auto moved = [&](const std::optional<double>& now, const std::optional<double>& then) {
    return now && then &&
           std::abs(*now - *then) > std::max(kLeastMove, kLeastMovePart * reading.watts);
  };
  const double trust = expected_.parts_watts > 0 ? 1 : kModelTrust;
  const double passed = std::chrono::duration<double>(reading.time - run_.last).count();
  run_.last = reading.time;
  if (!run_.load) {
    run_.load = reading.time - run_.begin >= kSettled ? load : std::nullopt;
  } else if (moved(load, run_.load)) {
    run_.moved_seconds += std::clamp(passed, 0.0, kMaxStep);
    ++run_.moved_readings;
  }
  const bool alone = expected_.parts_watts <= 0;
  stale_ = run_.moved_seconds >= kStale || (alone && moved(expected_.load_now, run_.first_load));
  const double patience = std::clamp(4 * longest_, kPatience, kMaxPatience);
  frozen_ = run_.moved_readings >= kMovedReadings && run_.moved_seconds >= trust * patience;
  return frozen_;
}

/// One reading that the load does not explain waits for a second one. Longer doubts would cost more
/// where something starts that no other meter shows, such as a GPU.
bool SourceGate::jumps(double watts) {
  if (!expected_.load_watts || (expected_.by_line_only && !expected_.watts)) {
    return false;
  }
  const double before = std::exchange(believed_, watts);
  const auto [low, high] = expected_.watts.value_or(std::pair(before, before));
  // Nothing is expected of the first reading.
  if (before == 0 || (watts <= kJump * high && kJump * watts >= low)) {
    unconfirmed_.reset();
    return false;
  }
  const bool confirmed = unconfirmed_ && !differ(watts, *unconfirmed_, kAgree);
  unconfirmed_ = watts;
  believed_ = confirmed ? watts : before;
  return !confirmed;
}

void SourceGate::exclude(Doubt doubt) {
  ++counts_.at(static_cast<std::size_t>(doubt));
  // A meter that really jumped, to be confirmed by its next reading, is not for the log.
  if (doubt != Doubt::kJump) {
    doubt_ = static_cast<std::uint8_t>(doubt);
    fresh_ = true;
  }
}

std::optional<Doubt> SourceGate::doubt() const {
  const std::uint8_t doubt = doubt_;
  return doubt == kNone ? std::nullopt : std::optional(static_cast<Doubt>(doubt));
}

void SourceGate::report(Clock::SteadyTime now, std::string_view instead) {
  const auto doubt = this->doubt();
  if (fresh_) {
    last_doubt_ = now;
    fresh_ = false;
    // The sampler logs what cannot be read; here only what takes its place is of interest.
    if (!logged_ && doubt && (doubt != Doubt::kUnreadable || !instead.empty())) {
      logged_ = true;
      log::warn("energy: a source is not believed",
                {{"source", name_},
                 {"reason", explain(*doubt)},
                 {"instead", instead.empty() ? "nothing" : instead}});
    }
    return;
  }
  if (doubt && last_doubt_ && now - *last_doubt_ >= kQuiet) {
    doubt_ = kNone;
    if (std::exchange(logged_, false)) {
      log::info("energy: a source is believed again", {{"source", name_}});
    }
  }
}

}  // namespace ceems::exporter::energy
