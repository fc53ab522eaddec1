#include "exporter/energy/account/use_history.h"

#include <algorithm>
#include <cmath>

namespace ceems::exporter::energy {

std::uint32_t UseHistory::Sum::steps() const {
  constexpr double kRange = 4294967296.0;  // 2^32
  return static_cast<std::uint32_t>(std::fmod(now_ * kSteps, kRange));
}

/// The sums since a point.
double UseHistory::Sum::before_now(const Point& point) const {
  const std::uint32_t before = marks_.at(point.before);
  const std::uint32_t after = point.after < kMarks ? marks_.at(point.after) : steps();
  return static_cast<double>(steps() - after) +
         (1 - point.part) * static_cast<double>(after - before);
}

double UseHistory::Sum::between(const Point& first, const Point& last) const {
  return std::max(0.0, before_now(first) - before_now(last)) / kSteps;
}

UseHistory::Unit* UseHistory::find_or_add(const UnitWatts::Use& use) {
  const auto found = places_.find(use.key);
  if (found != places_.end()) {
    return &units_[found->second];
  }
  if (use.cores <= 0) {
    return nullptr;  // it begins with what it uses
  }
  if (units_.size() == kMaxUnits) {
    forget_old();
  }
  if (units_.size() == kMaxUnits) {
    return nullptr;
  }
  places_.emplace(use.key, units_.size());
  Unit& unit = units_.emplace_back();
  unit.key = use.key;
  if (use.before != nullptr) {
    unit.before = *use.before;
  }
  return &unit;
}

/// Removes units that no mark knows as alive any more, or the one that ended first.
void UseHistory::forget_old() {
  const std::size_t oldest = mark_count_ > kMarks ? mark_count_ % kMarks : 0;
  double least = marks_.at(oldest).time;
  if (units_.size() == kMaxUnits) {
    const auto first = std::ranges::min_element(units_, {}, &Unit::seen);
    if (first->seen < now_.time) {
      least = std::max(least, std::nextafter(first->seen, now_.time));
    }
  }
  for (std::size_t i = 0; i < units_.size();) {
    if (units_[i].seen >= least) {
      ++i;
      continue;
    }
    places_.erase(units_[i].key);
    if (i + 1 < units_.size()) {
      units_[i] = units_.back();
      places_[units_[i].key] = i;
    }
    units_.pop_back();
  }
}

void UseHistory::advance(double seconds,
                         const Means& means,
                         std::span<const UnitWatts::Use> units) {
  if (!(seconds > 0)) {
    return;
  }
  if (mark_count_ == 0) {
    marks_.at(mark_count_++) = now_;
  }
  now_.time += seconds;
  now_.core_seconds += means.cores * seconds;
  now_.awake_seconds += means.awake * seconds;
  now_.beside_resting += means.beside_resting * seconds;
  for (const UnitWatts::Use& use : units) {
    if (Unit* unit = find_or_add(use)) {
      unit->core_seconds.add(use.cores * seconds);
      unit->beside_resting.add(std::max(0.0, use.beside_resting) * seconds);
      unit->seen = now_.time;
    }
  }
  const std::size_t last = (mark_count_ - 1) % kMarks;
  if (now_.time - marks_.at(last).time < kSpacing) {
    return;
  }
  const std::size_t next = mark_count_++ % kMarks;
  marks_.at(next) = now_;
  for (Unit& unit : units_) {
    unit.core_seconds.mark(next);
    unit.beside_resting.mark(next);
  }
  if (next == 0) {
    forget_old();
  }
}

std::optional<UseHistory::Point> UseHistory::at(double time) const {
  std::size_t low = mark_count_ > kMarks ? mark_count_ - kMarks : 0;
  std::size_t high = mark_count_;  // stands for now
  if (mark_count_ == 0 || time < marks_.at(low % kMarks).time || time > now_.time) {
    return std::nullopt;
  }
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (marks_.at(middle % kMarks).time <= time ? low : high) = middle;
  }
  const double begin = marks_.at(low % kMarks).time;
  const double end = high < mark_count_ ? marks_.at(high % kMarks).time : now_.time;
  return Point{.before = low % kMarks,
               .after = high < mark_count_ ? high % kMarks : kMarks,
               .part = end > begin ? (time - begin) / (end - begin) : 0};
}

UseHistory::Mark UseHistory::mark_at(const Point& point) const {
  const Mark& before = marks_.at(point.before);
  const Mark& after = point.after < kMarks ? marks_.at(point.after) : now_;
  return {.time = std::lerp(before.time, after.time, point.part),
          .core_seconds = std::lerp(before.core_seconds, after.core_seconds, point.part),
          .awake_seconds = std::lerp(before.awake_seconds, after.awake_seconds, point.part),
          .beside_resting = std::lerp(before.beside_resting, after.beside_resting, point.part)};
}

std::optional<UseHistory::Means> UseHistory::look_back(double age, double seconds) {
  const double end = now_.time - std::max(age, 0.0);
  const auto first = at(end - seconds);
  const auto last = at(end);
  if (!first || !last || !(seconds > 0)) {
    return std::nullopt;
  }
  uses_.clear();
  for (const Unit& unit : units_) {
    const double used = unit.core_seconds.between(*first, *last);
    if (used > 0 || unit.seen >= now_.time) {
      uses_.push_back({.key = unit.key,
                       .cores = used / seconds,
                       .beside_resting = unit.beside_resting.between(*first, *last) / seconds,
                       .before = unit.before ? &*unit.before : nullptr});
    }
  }
  const Mark begin = mark_at(*first);
  const Mark until = mark_at(*last);
  return Means{.cores = (until.core_seconds - begin.core_seconds) / seconds,
               .awake = (until.awake_seconds - begin.awake_seconds) / seconds,
               .beside_resting = (until.beside_resting - begin.beside_resting) / seconds};
}

}  // namespace ceems::exporter::energy
