#include "exporter/energy/account/meter_lag.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ceems::exporter::energy {
namespace {

/// Changes below this are noise or rounding, as a fraction of the value and in watts.
constexpr double kMinChange = 0.02;
constexpr double kMinChangeWatts = 4;
constexpr double kMinChangeCpus = 1;
/// Seconds after which meters that tell afterwards what they drew have told it.
constexpr double kToldAfter = 2.5;
/// Seconds after which a value that has not changed shows that it does not.
constexpr double kTimeToChange = 30;
/// What remains of older changes after a new one.
constexpr double kKeep = 0.97;
/// The lag is known while at most these parts of the changes are not explained. CPU use explains
/// less than power, because not all work draws the same.
constexpr double kMaxUnexplainedByPower = 0.15;
constexpr double kMaxUnexplainedByUse = 0.4;
/// Watts at the wall per watt of the known domains: supply, fans and regulators add to it.
constexpr double kMinSlope = 0.95;
constexpr double kMaxSlope = 1.5;
/// The same as long as the known domains have drawn nearly the same, and the spread from which on
/// observations count for more, as a fraction of their power.
constexpr double kSlope = 1.1;
constexpr double kLineSpread = 0.03;
/// After how many seconds a value counts half for the line.
constexpr double kHalfLife = 4 * 3600;
/// Averages that differ by less are similar: as a fraction of power, of use, and in CPUs.
constexpr double kSteadyPower = 0.02;
constexpr double kSteadyUse = 0.02;
constexpr double kSteadyCpus = 0.5;
/// What a line counts for, in seconds of values, after it was moved.
constexpr double kMovedSeconds = 300;
/// By what factor the shortest period that was seen grows at each change.
constexpr double kForgetPeriod = 1.01;
/// The part of a period that counts as a whole one, because readings are never exactly on time.
constexpr double kPeriodSlack = 0.8;
/// By what part of a window counters may be read late for an average over it.
constexpr double kMaxLate = 0.05;
/// For how long one value may stand.
constexpr double kMaxSeconds = 120;

bool valid(double value) {
  return std::isfinite(value) && value > 0;
}

}  // namespace

double MeterLag::Lag::shared(const Lag& other) const {
  const double both =
      std::min(delay + window, other.delay + other.window) - std::max(delay, other.delay);
  return std::max(0.0, both) / std::max(window, other.window);
}

void MeterLag::Changes::add(double x, double y, bool counts) {
  xx = kKeep * xx + x * x;
  xy = kKeep * xy + x * y;
  yy = kKeep * yy + y * y;
  count += counts ? 1 : 0;
}

double MeterLag::Changes::unexplained(double least, double most) const {
  if (count < kMinChanges || yy <= 0) {
    return 1;
  }
  const double slope = xx > 0 ? std::clamp(xy / xx, least, most) : 0;
  return std::clamp((yy - 2 * slope * xy + slope * slope * xx) / yy, 0.0, 1.0);
}

void MeterLag::advance(double seconds, double known_joules, double busy_seconds, double late) {
  if (!valid(seconds)) {
    return;
  }
  if (mark_count_ == 0) {
    marks_[mark_count_++] = newest_;
  }
  newest_.time += seconds;
  newest_.known_joules += valid(known_joules) ? known_joules : 0;
  newest_.busy_seconds += valid(busy_seconds) ? busy_seconds : 0;
  newest_.late = valid(late) ? late : 0;
  if (newest_.time - marks_[(mark_count_ - 1) % kMarks].time >= kSpacing) {
    marks_[mark_count_++ % kMarks] = newest_;
  }
  learn_waiting();
}

/// The counters at a time; nothing if it is before the oldest mark.
std::optional<MeterLag::Mark> MeterLag::at(double time) const {
  std::size_t low = mark_count_ > kMarks ? mark_count_ - kMarks : 0;
  std::size_t high = mark_count_;  // stands for newest_
  if (mark_count_ == 0 || time < marks_[low % kMarks].time) {
    return std::nullopt;
  }
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (marks_[middle % kMarks].time <= time ? low : high) = middle;
  }
  const Mark& before = marks_[low % kMarks];
  const Mark& after = high < mark_count_ ? marks_[high % kMarks] : newest_;
  const double part = after.time > before.time
                          ? std::clamp((time - before.time) / (after.time - before.time), 0.0, 1.0)
                          : 0;
  return Mark{.time = time,
              .known_joules = std::lerp(before.known_joules, after.known_joules, part),
              .busy_seconds = std::lerp(before.busy_seconds, after.busy_seconds, part),
              .late = std::max(before.late, after.late)};
}

std::optional<MeterLag::Means> MeterLag::means(const std::optional<Mark>& first,
                                               const std::optional<Mark>& last) {
  if (!first || !last) {
    return std::nullopt;
  }
  const double seconds = last->time - first->time;
  if (std::max(first->late, last->late) > kMaxLate * seconds) {
    return std::nullopt;
  }
  return Means{.known_watts = (last->known_joules - first->known_joules) / seconds,
               .busy_cores = (last->busy_seconds - first->busy_seconds) / seconds};
}

/// What a value of `time` describes, if the lag is that of a candidate.
std::optional<MeterLag::Means> MeterLag::means_of(std::size_t candidate, double time) const {
  const double end = time - kDelays.at(candidate / kWindows.size());
  return means(at(end - kWindows.at(candidate % kWindows.size())), at(end));
}

bool MeterLag::similar(const Means& a, const Means& b) {
  return std::abs(a.known_watts - b.known_watts) <=
             kSteadyPower * std::max(a.known_watts, b.known_watts) &&
         std::abs(a.busy_cores - b.busy_cores) <=
             std::max(kSteadyCpus, kSteadyUse * std::max(a.busy_cores, b.busy_cores));
}

/// Whether it makes no difference which time the newest value describes.
bool MeterLag::steady() const {
  const auto& first = candidates_.front().now;
  return std::ranges::all_of(candidates_, [&](const Candidate& candidate) {
    return first && candidate.now && similar(*first, *candidate.now);
  });
}

/// Takes a value that the meter has just made. A value that did not change although the node's
/// power did shows as much as one that changed, if it had the time to: one that slides changes by
/// little from second to second.
void MeterLag::compare(double watts, double time) {
  const double change = reference_watts_ ? watts - *reference_watts_ : 0;
  const double least = std::max(kMinChangeWatts, kMinChange * watts);
  const bool changed = std::abs(change) >= least;
  const auto moved = [&](const Candidate& candidate) {
    return candidate.last && candidate.now &&
           (std::abs(candidate.now->known_watts - candidate.last->known_watts) >= least ||
            std::abs(candidate.now->busy_cores - candidate.last->busy_cores) >= kMinChangeCpus);
  };
  if (reference_watts_ && !changed &&
      (time - reference_time_ < kTimeToChange || std::ranges::none_of(candidates_, moved))) {
    return;
  }
  for (Candidate& candidate : candidates_) {
    if (reference_watts_ && candidate.last && candidate.now) {
      candidate.by_power.add(candidate.now->known_watts - candidate.last->known_watts, change,
                             changed);
      candidate.by_use.add(candidate.now->busy_cores - candidate.last->busy_cores, change, changed);
    }
    candidate.last = candidate.now;
  }
  reference_watts_ = watts;
  reference_time_ = time;
  choose();
}

void MeterLag::choose() {
  const auto unexplained = [](const Candidate& candidate) {
    // Relative to the largest error that is good enough.
    return std::min(
        candidate.by_power.unexplained(kMinSlope, kMaxSlope) / kMaxUnexplainedByPower,
        candidate.by_use.unexplained(0, std::numeric_limits<double>::max()) / kMaxUnexplainedByUse);
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < kCandidates; ++i) {
    if (unexplained(candidates_.at(i)) < unexplained(candidates_.at(best))) {
      best = i;
    }
  }
  best_ = unexplained(candidates_.at(best)) <= 1 ? std::optional(best) : std::nullopt;
  if (!best_) {
    held_known_watts_.reset();
  }
}

/// Notes when the meter changes. Returns whether it has made its value since it was last asked.
bool MeterLag::Updates::take(double new_watts, double new_time) {
  const bool changed = !watts || *watts != new_watts;
  if (changed) {
    if (change) {
      period = std::min(new_time - *change, period.value_or(kMaxSeconds) * kForgetPeriod);
    }
    change = new_time;
  }
  const bool often = period && time && new_time - *time >= kPeriodSlack * *period;
  watts = new_watts;
  time = new_time;
  return changed || often;
}

void MeterLag::correct(double watts, double age) {
  if (!std::isfinite(watts) || !valid(age)) {
    return;
  }
  corrected_ = true;
  const double begin = newest_.time - age;
  for (std::size_t i = mark_count_; i > 0 && i + kMarks > mark_count_; --i) {
    Mark& mark = marks_[(i - 1) % kMarks];
    if (mark.time <= begin) {
      break;
    }
    mark.known_joules += watts * (mark.time - begin);
  }
  newest_.known_joules += watts * age;
}

void MeterLag::hold(double watts, double age) {
  if (!valid(watts) || mark_count_ == 0 || !std::isfinite(age)) {
    return;
  }
  new_seconds_ = std::max(age, 0.0);
  const double time = newest_.time - *new_seconds_;
  if (shown_.take(watts, time) && best_) {
    const auto described = means_of(*best_, time);
    held_known_watts_ = described ? std::optional(described->known_watts) : std::nullopt;
  }
}

void MeterLag::learn(double watts, double age) {
  if (!valid(watts) || mark_count_ == 0 || !std::isfinite(age)) {
    return;
  }
  waiting_.at(waiting_end_++ % kWaiting) = {.time = newest_.time - std::max(age, 0.0),
                                            .watts = watts};
  waiting_begin_ = std::max(waiting_begin_, waiting_end_ > kWaiting ? waiting_end_ - kWaiting : 0);
  learn_waiting();
}

/// Learns from values once all meters have told what they showed at their time.
void MeterLag::learn_waiting() {
  while (waiting_begin_ < waiting_end_) {
    const Waiting& waiting = waiting_.at(waiting_begin_ % kWaiting);
    if (corrected_ && newest_.time - waiting.time < kToldAfter) {
      return;
    }
    ++waiting_begin_;
    learn_at(waiting.watts, waiting.time);
  }
}

void MeterLag::learn_at(double watts, double time) {
  for (std::size_t delay = 0; delay < kDelays.size(); ++delay) {
    const double end = time - kDelays.at(delay);
    const auto last = at(end);
    for (std::size_t window = 0; window < kWindows.size(); ++window) {
      candidates_.at(delay * kWindows.size() + window).now =
          means(at(end - kWindows.at(window)), last);
    }
  }
  Kept kept{.time = time, .watts = watts, .made_after = time};
  if (learned_.take(watts, time)) {
    compare(watts, time);
  } else {
    kept.made_after = learned_.change.value_or(time);
  }
  const bool any = !best_ && steady();
  kept.seconds = std::min(last_kept_ ? time - *last_kept_ : kWindows.front(), kMaxSeconds);
  if (kept.seconds <= 0 || (!any && !best_ && last_kept_ && kept.seconds < kKeptSpacing)) {
    return;
  }
  last_kept_ = time;
  if (any) {
    kept.made_after = time;
    steady_ = align(0, kept);
    if (steady_) {
      steady_->window = kWindows.back();
    }
    return;
  }
  kept_.at(kept_end_++ % kKept) = kept;
  kept_begin_ = std::max(kept_begin_, kept_end_ > kKept ? kept_end_ - kKept : 0);
}

/// The value beside what it describes, if the lag is that of `candidate`.
std::optional<AlignedReading> MeterLag::align(std::size_t candidate, const Kept& kept) {
  const auto described = means_of(candidate, kept.time);
  const auto earliest =
      kept.made_after < kept.time ? means_of(candidate, kept.made_after) : described;
  // A meter may be stuck or see only a part of the node.
  if (!described || !earliest || !similar(*described, *earliest) ||
      kept.watts < described->known_watts) {
    return std::nullopt;
  }
  // Values between this one and the last one stood for nothing, but its window may have.
  const double most = std::max(kWindows.at(candidate % kWindows.size()), kept.seconds);
  const double gap = last_returned_ ? kept.time - *last_returned_ : 0;
  last_returned_ = kept.time;
  const AlignedReading reading{
      .watts = kept.watts,
      .known_watts = described->known_watts,
      .busy_cores = described->busy_cores,
      .seconds = std::clamp(gap, kept.seconds, most),
      .window = kWindows.at(candidate % kWindows.size()),
      .age = newest_.time - kept.time + kDelays.at(candidate / kWindows.size()),
      .period = learned_.period.value_or(kMaxSeconds),
      .repeated = kept.made_after < kept.time};
  line_.add(reading);
  return reading;
}

void MeterLag::Line::add(const AlignedReading& reading) {
  const double kept_weight = weight * std::exp2(-reading.seconds / kHalfLife);
  weight = kept_weight + reading.seconds;
  const double part = reading.seconds / weight;
  const double known_step = reading.known_watts - known;
  const double watts_step = reading.watts - watts;
  known += part * known_step;
  watts += part * watts_step;
  const double old = kept_weight / weight;
  spread = old * (spread + part * known_step * known_step);
  together = old * (together + part * known_step * watts_step);
}

std::optional<double> MeterLag::watts_at(double known_watts) const {
  if (line_.weight <= 0) {
    return std::nullopt;
  }
  const double prior = kLineSpread * line_.known * kLineSpread * line_.known;
  const double slope = prior > 0
                           ? std::clamp((line_.together + prior * kSlope) / (line_.spread + prior),
                                        kMinSlope, kMaxSlope)
                           : kSlope;
  return std::max(0.0, line_.watts + slope * (known_watts - line_.known));
}

std::optional<AlignedReading> MeterLag::next() {
  if (steady_) {
    return std::exchange(steady_, std::nullopt);
  }
  while (best_ && kept_begin_ < kept_end_) {
    if (const auto reading = align(*best_, kept_.at(kept_begin_++ % kKept))) {
      return reading;
    }
  }
  return std::nullopt;
}

std::optional<MeterLag::Lag> MeterLag::lag() const {
  if (!best_) {
    return std::nullopt;
  }
  return Lag{.delay = kDelays.at(*best_ / kWindows.size()),
             .window = kWindows.at(*best_ % kWindows.size())};
}

bool MeterLag::State::plausible() const {
  constexpr double kMaxSum = 1e15;
  constexpr double kMaxLineWatts = 1e6;
  constexpr double kRounding = 1e-6;
  const auto changes = [](const std::array<double, 4>& sums) {
    const auto [xx, xy, yy, count] = sums;
    return xx >= 0 && xx <= kMaxSum && yy >= 0 && yy <= kMaxSum && count >= 0 && count <= kMaxSum &&
           xy * xy <= xx * yy * (1 + kRounding);  // false for NaN
  };
  const auto [weight, known, watts, spread, together] = line;
  const bool no_line = line == std::array<double, 5>{};
  return std::ranges::find(kDelays, lag.delay) != kDelays.end() &&
         std::ranges::find(kWindows, lag.window) != kWindows.end() && changes(by_power) &&
         changes(by_use) &&
         (no_line || (weight > 0 && weight <= kMaxSum && known >= 0 && known <= kMaxLineWatts &&
                      watts > 0 && watts <= kMaxLineWatts && spread >= 0 && spread <= kMaxSum &&
                      std::abs(together) <= kMaxSum));
}

std::optional<MeterLag::State> MeterLag::state() const {
  const auto known = lag();
  if (!known || !best_) {
    return std::nullopt;
  }
  const Candidate& candidate = candidates_.at(*best_);
  const auto sums = [](const Changes& changes) {
    return std::array{changes.xx, changes.xy, changes.yy, changes.count};
  };
  return State{.lag = *known,
               .by_power = sums(candidate.by_power),
               .by_use = sums(candidate.by_use),
               .line = {line_.weight, line_.known, line_.watts, line_.spread, line_.together}};
}

void MeterLag::restore(const State& state) {
  if (best_ || !state.plausible()) {
    return;
  }
  const auto position = [](const auto& values, double value) {
    return static_cast<std::size_t>(std::ranges::find(values, value) - values.begin());
  };
  const std::size_t place =
      position(kDelays, state.lag.delay) * kWindows.size() + position(kWindows, state.lag.window);
  Candidate& candidate = candidates_.at(place);
  const auto sums = [](const std::array<double, 4>& values) {
    return Changes{.xx = values[0], .xy = values[1], .yy = values[2], .count = values[3]};
  };
  candidate.by_power = sums(state.by_power);
  candidate.by_use = sums(state.by_use);
  choose();
  if (best_ == place && line_.weight <= 0) {
    set_line(&state);
  }
}

double MeterLag::comparable_joules(double known_joules,
                                   double seconds,
                                   std::optional<double> even_joules) {
  if (!valid(seconds)) {
    return known_joules;
  }
  const double known_watts = even_joules.value_or(known_joules) / seconds;
  const double recent = std::min(new_seconds_.value_or(seconds), seconds);
  const double aligned = held_known_watts_.value_or(known_watts) * recent +
                         former_known_watts_.value_or(known_watts) * (seconds - recent);
  former_known_watts_ = held_known_watts_;
  new_seconds_.reset();
  ahead_joules_ += known_joules - aligned;
  const double settled = std::max(ahead_joules_ * std::min(1.0, seconds / kSettle), -aligned);
  ahead_joules_ -= settled;
  return aligned + settled;
}

void MeterLag::restart_history() {
  mark_count_ = 0;
  for (Candidate& candidate : candidates_) {
    candidate.last.reset();
    candidate.now.reset();
    if (!best_) {
      candidate.by_power = {};  // other domains did not explain the changes
    }
  }
  reference_watts_.reset();
  steady_.reset();
  waiting_begin_ = waiting_end_;
  kept_begin_ = kept_end_;
  held_known_watts_.reset();
  former_known_watts_.reset();
}

void MeterLag::move_line(double watts) {
  line_.known += watts;
  const double part = line_.weight > kMovedSeconds ? kMovedSeconds / line_.weight : 1;
  line_.weight *= part;
}

void MeterLag::set_line(const State* state) {
  line_ = {};
  if (state != nullptr && state->plausible()) {
    const auto [weight, known, watts, spread, together] = state->line;
    line_ = {
        .weight = weight, .known = known, .watts = watts, .spread = spread, .together = together};
  }
}

void MeterLag::reset() {
  const double ahead = ahead_joules_;
  *this = MeterLag();
  ahead_joules_ = ahead;
}

}  // namespace ceems::exporter::energy
