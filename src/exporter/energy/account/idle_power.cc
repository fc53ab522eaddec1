#include "exporter/energy/account/idle_power.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace ceems::exporter::energy {
namespace {

/// Of how many windows a bin is the average.
constexpr double kMemory = 90;
/// Upper bound of a node's power and of the number of windows.
constexpr double kMaxWatts = 1e6;
constexpr double kMaxWindows = 1e6;
/// Windows above the average of their bin count for less, because a domain never draws less than
/// when it is idle, but often more for other reasons than CPU use.
constexpr double kUpwards = 0.25;
/// Windows after which a bin has its full weight.
constexpr double kTrusted = 6;
/// Windows after which a bin counts as more than chance.
constexpr double kSure = 3;
/// The use at which a bin has half the weight of an idle one.
constexpr double kNear = 0.05;
/// By how much the assumed slope may be off, as a fraction of it.
constexpr double kAssumed = 0.5;
/// The spread of use from which on observations count for more than the assumed slope.
constexpr double kSpread = 0.1;

double square(double value) {
  return value * value;
}

}  // namespace

bool PowerEstimate::plausible() const {
  return watts > 0 && watts <= kMaxWatts && deviation >= 0 && deviation <= kMaxWatts;
}

PowerEstimate combine(const PowerEstimate& a, const PowerEstimate& b) {
  const double sum = square(a.deviation) + square(b.deviation);
  if (!(sum > 0)) {
    return a;
  }
  const double part = square(a.deviation) / sum;
  return {.watts = a.watts + part * (b.watts - a.watts),
          .deviation = a.deviation * b.deviation / std::sqrt(sum)};
}

bool IdlePower::Bin::plausible() const {
  return use >= 0 && use <= 1 && watts > 0 && watts <= kMaxWatts && windows > 0 &&
         windows <= kMaxWindows;  // false for NaN
}

void IdlePower::add(Bin& bin, double use, double watts) {
  bin.windows = std::min(bin.windows + 1, kMemory);
  bin.use += (use - bin.use) / bin.windows;
  const double most = bin.windows > 1 ? kMaxStep * std::max(bin.watts, watts)
                                      : std::numeric_limits<double>::infinity();
  const double change = (watts - bin.watts) / bin.windows;
  bin.watts +=
      std::clamp(change > 0 && bin.windows > kTrusted ? change * kUpwards : change, -most, most);
}

IdlePower::Bin& IdlePower::bin_of(double use) {
  const double root = std::sqrt(use);  // bins are narrower towards zero
  const auto bin = static_cast<std::size_t>(root * static_cast<double>(kBins));
  return bins_.at(std::min(bin, kBins - 1));
}

std::vector<IdlePower::Bin> IdlePower::state() const {
  std::vector<Bin> seen;
  if (!configured_) {
    std::ranges::copy_if(bins_, std::back_inserter(seen), &Bin::plausible);
  }
  return seen;
}

void IdlePower::restore(std::span<const Bin> state) {
  bool any = false;
  for (const Bin& bin : state) {
    if (configured_ || !bin.plausible()) {
      continue;
    }
    if (Bin& place = bin_of(bin.use); place.windows == 0) {
      place = bin;
      place.windows = std::min(bin.windows, kMemory);
      any = true;
    }
  }
  if (any) {
    estimate_ = fit();
  }
}

void IdlePower::move(double watts) {
  for (Bin& bin : bins_) {
    bin.watts += bin.windows > 0 ? watts : 0;
    bin.windows = std::min(bin.windows, kSure);
  }
  if (std::ranges::any_of(bins_,
                          [](const Bin& bin) { return bin.windows > 0 && bin.watts <= 0; })) {
    forget();
  } else if (std::ranges::any_of(bins_, &Bin::plausible)) {
    estimate_ = fit();
  } else {
    estimate_.reset();
  }
  joules_ = 0;
  busy_seconds_ = 0;
  window_.restart();
}

void IdlePower::forget() {
  bins_.fill({});
  estimate_.reset();
  joules_ = 0;
  busy_seconds_ = 0;
  window_.restart();
}

void IdlePower::observe(double joules, double seconds, double utilisation, const Timing& timing) {
  if (configured_ || !(joules > 0) || !(seconds > 0)) {
    return;  // the meter did not move, which shows nothing about the power
  }
  const double busy = std::isnan(utilisation) ? 0 : std::clamp(utilisation, 0.0, 1.0);
  if (!estimate_) {  // the first interval serves until the first window is full
    const double watts = joules / seconds;
    const double idle = watts / (1 + assumed_slope() * load(busy));
    estimate_ = {.watts = idle, .deviation = kAssumed * (watts - idle)};
  }
  joules_ += joules;
  busy_seconds_ += busy * seconds;
  const Window::Next next = window_.add(seconds, timing);
  if (next == Window::Next::kSame) {
    return;
  }
  if (next == Window::Next::kNew) {
    close_window();
  }
  joules_ = 0;
  busy_seconds_ = 0;
  window_.restart();
}

void IdlePower::close_window() {
  const double use = busy_seconds_ / window_.seconds();
  add(bin_of(use), use, joules_ / window_.seconds());
  estimate_ = fit();
}

std::optional<double> IdlePower::lowest() const {
  std::optional<double> lowest;
  for (const Bin& bin : bins_) {
    if (bin.windows >= kSure) {
      lowest = std::min(lowest.value_or(bin.watts), bin.watts);
    }
  }
  return lowest;
}

PowerEstimate IdlePower::fit() const {
  // Minimises sum of weight * (idle + slope * use - watts)^2 + prior * (slope - assumed * idle)^2.
  // Here use is the load() of it.
  const auto use = [this](const Bin& bin) { return load(bin.use); };
  const auto weight = [&use](const Bin& bin) {
    return std::min(bin.windows / kTrusted, 1.0) / (1 + square(use(bin) / kNear));
  };
  const auto first = std::ranges::find_if(bins_, [](const Bin& bin) { return bin.windows > 0; });
  double weights = 0;
  double uses = 0;   // relative to the first bin, so that a single one has no rounding error
  double watts = 0;  // likewise
  double lowest = first->watts;
  for (const Bin& bin : bins_) {
    if (bin.windows > 0) {
      weights += weight(bin);
      uses += weight(bin) * (use(bin) - use(*first));
      watts += weight(bin) * (bin.watts - first->watts);
      lowest = std::min(lowest, bin.watts);
    }
  }
  const double mean_use = use(*first) + uses / weights;
  const double mean_watts = first->watts + watts / weights;
  double spread = 0;
  double together = 0;
  for (const Bin& bin : bins_) {
    if (bin.windows > 0) {
      spread += weight(bin) * square(use(bin) - mean_use);
      together += weight(bin) * (use(bin) - mean_use) * (bin.watts - mean_watts);
    }
  }
  const double prior = weights * square(kSpread);
  const double assumed_idle = mean_watts / (1 + assumed_slope() * mean_use);
  const double slope = (together + prior * assumed_slope() * assumed_idle) / (spread + prior);
  const double idle = mean_watts - std::max(slope, 0.0) * mean_use;
  const double assumed = prior * assumed_slope() * assumed_idle / (spread + prior) * mean_use;
  return {.watts = std::clamp(idle, full_load_idle_ * std::min(assumed_idle, lowest), lowest),
          .deviation = kAssumed * std::abs(assumed)};
}

}  // namespace ceems::exporter::energy
