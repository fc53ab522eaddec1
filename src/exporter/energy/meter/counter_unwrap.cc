#include "exporter/energy/meter/counter_unwrap.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/log.h"
#include "exporter/energy/meter/source_gate.h"

namespace ceems::exporter::energy {
namespace {

/// A shorter interval says little about the power, because hardware updates its counter late.
constexpr double kMinSeconds = 0.1;

/// Bounds of parts whose power limits are not known, as with AMD's counters, by Domain. The largest
/// processors are specified with 500 W, the memory of a socket with 24 modules draws about 150 W.
/// A platform (psys) contains the processors, and accelerators on some.
constexpr std::array<PowerBound, kDomainCount> kUnknownLimits{{
    {.expected = 500, .ceiling = 4'000},     // kPackage
    {.expected = 200, .ceiling = 2'000},     // kDram
    {.expected = 1'000, .ceiling = 4'000},   // kGpu
    {.expected = 2'000, .ceiling = 50'000},  // kOther
    {.expected = 2'000, .ceiling = 50'000},  // kNode
}};

/// The most joules that `watts` can mean in an interval.
double most_joules(double watts, double seconds) {
  return watts * (CounterUnwrap::kMargin * seconds + CounterUnwrap::kSlack);
}

bool all_ones(std::uint64_t value) {
  return value == std::numeric_limits<std::uint64_t>::max() ||
         value == std::numeric_limits<std::int64_t>::max() ||
         value == std::numeric_limits<std::uint32_t>::max();
}

}  // namespace

PowerBound power_bound(Domain domain, std::optional<double> limit_watts) {
  PowerBound bound = kUnknownLimits.at(index(domain));
  // Firmware shows 0 for "none" and the largest value of the register for "unlimited".
  if (limit_watts && *limit_watts >= 1 && *limit_watts < bound.ceiling) {
    bound.expected = *limit_watts;
  }
  return bound;
}

/// The joules of a step; nothing if the counter cannot have wrapped.
std::optional<double> CounterUnwrap::step(std::uint64_t last_uj, std::uint64_t raw_uj) const {
  if (raw_uj >= last_uj) {
    return static_cast<double>(raw_uj - last_uj) * 1e-6;
  }
  if (range_uj_ <= last_uj) {
    return std::nullopt;  // above its own maximum: it does not wrap there
  }
  return static_cast<double>(range_uj_ - last_uj + raw_uj) * 1e-6;
}

double CounterUnwrap::advance(std::uint64_t raw_uj,
                              Clock::SteadyTime now,
                              std::chrono::nanoseconds suspended) {
  const bool first = !last_uj_ || (missed_ && now - last_time_ > kMaxGap);
  const std::uint64_t last = last_uj_.value_or(0);
  const double seconds =
      std::max(0.0, std::chrono::duration<double>(now - std::exchange(last_time_, now)).count());
  const bool slept = suspended - std::exchange(last_suspended_, suspended) >= kMinSuspend;
  last_uj_ = raw_uj;
  missed_ = false;
  assumed_ = false;
  if (first) {
    reject_held_back();
    last_watts_ = 0;
    return 0;
  }
  const auto joules = step(last, raw_uj);
  const bool down = raw_uj < last;
  if (!joules || (down && (slept || *joules > most_joules(bound_.expected, seconds)))) {
    reject_held_back();  // a reset
    assumed_ = true;
    return 0;
  }
  if (!slept && *joules <= most_joules(bound_.expected, seconds)) {
    reject_held_back();
    if (seconds >= kMinSeconds) {
      last_watts_ = *joules / seconds;
    }
    return *joules;
  }
  if (slept || *joules > most_joules(bound_.ceiling, seconds)) {
    const double counted = std::min(*joules, usual_joules(seconds));
    reject_held_back();
    if (*joules > counted) {
      reject(*joules - counted);
    }
    return counted;
  }
  return hold_back(*joules, seconds);
}

/// What an interval would count with the power of the last one that was believed.
double CounterUnwrap::usual_joules(double seconds) {
  assumed_ = true;
  return std::min(last_watts_, bound_.expected) * seconds;
}

double CounterUnwrap::hold_back(double joules, double seconds) {
  if (held_.steps > 0) {
    // A step in no time is a jump, whatever came before.
    const double watts = seconds > 0 ? joules / seconds : std::numeric_limits<double>::infinity();
    if (watts > kAgreement * held_.watts() || held_.watts() > kAgreement * watts) {
      reject_held_back();
    }
  }
  const double counted = std::min(joules, usual_joules(seconds));
  ++held_.steps;
  held_.joules += joules - counted;
  held_.total_joules += joules;
  held_.seconds += seconds;
  if (held_.steps < kConfirmations || held_.seconds < kConfirmTime) {
    return counted;
  }
  if (held_.watts() > bound_.ceiling) {
    reject_held_back();
    return counted;
  }
  assumed_ = false;
  last_watts_ = held_.watts();
  bound_.expected = std::max(bound_.expected, last_watts_);
  return counted + std::exchange(held_, HeldBack{}).joules;
}

void CounterUnwrap::reject(double joules) {
  rejected_.joules += joules;
  ++rejected_.steps;
}

void CounterUnwrap::reject_held_back() {
  rejected_.joules += held_.joules;
  rejected_.steps += static_cast<std::uint64_t>(held_.steps);
  held_ = {};
}

void CounterUnwrap::miss() {
  missed_ = true;
  reject_held_back();
}

Result<Reading> MeteredCounter::advance(std::uint64_t raw_uj,
                                        const MeterContext& context,
                                        const SourceInfo& source) {
  if (all_ones(raw_uj)) {
    miss(context, source);
    if (context.gate != nullptr) {
      context.gate->exclude(Doubt::kSentinel);
    }
    return fail(ErrorCode::kUnavailable, "{}: the counter shows {:#x}", source.name, raw_uj);
  }
  const double joules = counter_.advance(raw_uj, context.now, context.suspended);
  publish(context, source);
  return Reading{.joules = joules,
                 .fresh = context.now,
                 .idle_watts = {},
                 .watts = {},
                 .raw_uj = raw_uj,
                 .assumed = counter_.assumed()};
}

void MeteredCounter::miss(const MeterContext& context, const SourceInfo& source) {
  counter_.miss();
  publish(context, source);
}

void MeteredCounter::publish(const MeterContext& context, const SourceInfo& source) {
  const Rejected& now = counter_.rejected();
  joules_ = now.joules;
  steps_ = now.steps;
  if (now.steps == logged_.steps || (last_log_ && context.now - *last_log_ < kLogPause)) {
    return;
  }
  log::warn("energy: a counter jumped by more than the hardware can draw; the excess is left out",
            {{"source", source.name},
             {"joules", now.joules - logged_.joules},
             {"jumps", now.steps - logged_.steps},
             {"expected_watts", counter_.expected_watts()}});
  logged_ = now;
  last_log_ = context.now;
}

}  // namespace ceems::exporter::energy
