#include "gate/shared_ids.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace ceems::gate {
namespace {

using promql::TimeSpan;

/// Clocks differ, and a unit has samples until the exporter notices its end.
constexpr std::int64_t kSlackMs = 60'000;

bool overlap(const TimeSpan& left, const TimeSpan& right) {
  return left.from_ms <= right.to_ms && right.from_ms <= left.to_ms;
}

/// Prevents overflow in sums and negations. Units do not live beyond these times.
TimeSpan bounded(const TimeSpan& span) {
  return {.from_ms = std::clamp(span.from_ms, -kFarTime, kFarTime),
          .to_ms = std::clamp(span.to_ms, -kFarTime, kFarTime)};
}

/// The times that a query evaluated at `time` reads.
TimeSpan read_at(std::int64_t time, const TimeSpan& around, std::int64_t lookback_ms) {
  return {.from_ms = time + around.from_ms - lookback_ms, .to_ms = time + around.to_ms};
}

/// The times of evaluation at which a query reads something of `life`.
TimeSpan that_read(const TimeSpan& life, const TimeSpan& around, std::int64_t lookback_ms) {
  return {.from_ms = life.from_ms - around.to_ms,
          .to_ms = life.to_ms - around.from_ms + lookback_ms};
}

/// The parts of `span` outside the holes, in order. There may be thousands of holes.
std::vector<TimeSpan> without(TimeSpan span, std::vector<TimeSpan> holes) {
  std::ranges::sort(holes, {}, &TimeSpan::from_ms);
  std::vector<TimeSpan> left;
  for (const TimeSpan& hole : holes) {
    if (span.from_ms > span.to_ms || hole.from_ms > span.to_ms) {
      break;
    }
    if (hole.from_ms > span.from_ms) {
      left.push_back({span.from_ms, hole.from_ms - 1});
    }
    span.from_ms = std::max(span.from_ms, hole.to_ms + 1);
  }
  if (span.from_ms <= span.to_ms) {
    left.push_back(span);
  }
  return left;
}

/// Whether one of `spans`, which are sorted and apart, overlaps with the span.
bool overlaps_any(const std::vector<TimeSpan>& spans, const TimeSpan& span) {
  const auto next = std::ranges::lower_bound(spans, span.from_ms, {}, &TimeSpan::to_ms);
  return next != spans.end() && overlap(*next, span);
}

/// The same times as sorted spans that do not overlap.
std::vector<TimeSpan> joined(std::vector<TimeSpan> spans) {
  std::ranges::sort(spans, {}, &TimeSpan::from_ms);
  std::vector<TimeSpan> all;
  for (const TimeSpan& span : spans) {
    if (!all.empty() && span.from_ms <= all.back().to_ms) {
      all.back().to_ms = std::max(all.back().to_ms, span.to_ms);
    } else {
      all.push_back(span);
    }
  }
  return all;
}

/// The times of `requested` within the span. If there are none, the end is before the start.
Evaluation within(const Evaluation& requested, const TimeSpan& span) {
  Evaluation part = requested;
  const std::int64_t steps = (span.from_ms - requested.start_ms + requested.step_ms - 1) /
                             requested.step_ms;  // rounded up
  part.start_ms = requested.start_ms + steps * requested.step_ms;
  part.end_ms = span.to_ms;
  return part;
}

TimeSpan life_of(const store::UnitLife& unit) {
  // A unit that ended without having started lived at most for a moment. One that did neither may
  // still start.
  std::int64_t from = unit.started_ms;
  if (from <= 0) {
    from = unit.ended_ms > 0 ? unit.ended_ms : unit.created_ms;
  }
  return bounded({.from_ms = from, .to_ms = unit.ended_ms > 0 ? unit.ended_ms : kFarTime});
}

TimeSpan with_slack(const TimeSpan& life) {
  return {.from_ms = life.from_ms - kSlackMs, .to_ms = life.to_ms + kSlackMs};
}

std::vector<TimeSpan> lives_of_others(const SharedIds& ids) {
  std::vector<TimeSpan> lives;
  for (const auto& [id, shared] : ids) {
    std::ranges::transform(shared.others, std::back_inserter(lives), with_slack);
  }
  return lives;
}

}  // namespace

SharedIds lives_by_id(std::vector<store::UnitLife> lives) {
  std::ranges::sort(lives, {}, [](const store::UnitLife& unit) {
    return std::make_tuple(unit.uuid, life_of(unit).from_ms);
  });
  SharedIds ids;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    TimeSpan life = life_of(lives[i]);
    const bool followed = i + 1 < lives.size() && lives[i + 1].uuid == lives[i].uuid;
    if (followed && lives[i].ended_ms <= 0) {
      life.to_ms = std::max(life.from_ms, life_of(lives[i + 1]).from_ms - 1);
    }
    SharedId& id = ids[lives[i].uuid];
    (lives[i].in_scope ? id.own : id.others).push_back(life);
  }
  return ids;
}

SharedIds shared_ids_among(std::vector<store::UnitLife> lives) {
  SharedIds ids = lives_by_id(std::move(lives));
  std::erase_if(ids, [](const auto& entry) { return entry.second.others.empty(); });
  return ids;
}

std::vector<Evaluation> own_parts(const Evaluation& requested,
                                  const promql::TimeSpan& around,
                                  std::int64_t lookback_ms,
                                  const SharedId& lives) {
  const TimeSpan reads = bounded(around);
  std::vector<TimeSpan> spans;
  for (const TimeSpan& life : lives.own) {
    const TimeSpan shown = with_slack(life);
    const TimeSpan wanted{.from_ms = std::max(shown.from_ms, requested.start_ms),
                          .to_ms = std::min(shown.to_ms, requested.end_ms)};
    if (wanted.from_ms <= wanted.to_ms) {
      spans.push_back(wanted);
    }
  }
  std::vector<TimeSpan> holes;
  holes.reserve(lives.others.size());
  for (const TimeSpan& life : lives.others) {
    holes.push_back(that_read(with_slack(life), reads, lookback_ms));
  }
  std::vector<Evaluation> parts;
  for (const TimeSpan& shown : joined(std::move(spans))) {
    for (const TimeSpan& span : without(shown, holes)) {
      const Evaluation part = within(requested, span);
      if (part.start_ms <= part.end_ms) {
        parts.push_back(part);
      }
    }
  }
  return parts;
}

std::optional<Evaluation> narrowed(const Evaluation& requested,
                                   const promql::Reach& reach,
                                   std::int64_t lookback_ms,
                                   const SharedIds& ids) {
  const std::vector<TimeSpan> others = lives_of_others(ids);
  const auto reads = [&](std::int64_t base, const std::optional<TimeSpan>& around) {
    return around && std::ranges::any_of(others, [&](const TimeSpan& life) {
             return overlap(read_at(base, bounded(*around), lookback_ms), life);
           });
  };
  if (reads(0, reach.fixed) || reads(requested.start_ms, reach.at_start) ||
      reads(requested.end_ms, reach.at_end)) {
    return std::nullopt;
  }
  if (!reach.around) {
    return requested;
  }
  const TimeSpan around = bounded(*reach.around);
  std::vector<TimeSpan> holes;
  holes.reserve(others.size());
  for (const TimeSpan& life : others) {
    holes.push_back(that_read(life, around, lookback_ms));
  }
  const auto parts = without({requested.start_ms, requested.end_ms}, std::move(holes));
  const bool whole = parts == std::vector<TimeSpan>{{requested.start_ms, requested.end_ms}};
  if (whole || reach.at_start || reach.at_end) {
    return whole ? std::optional(requested) : std::nullopt;
  }
  std::vector<TimeSpan> own;
  for (const auto& [id, shared] : ids) {
    for (const TimeSpan& life : shared.own) {
      own.push_back(that_read(life, around, lookback_ms));
    }
  }
  own = joined(std::move(own));
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const Evaluation left = within(requested, *part);
    if (left.start_ms <= left.end_ms && overlaps_any(own, {left.start_ms, left.end_ms})) {
      return left;
    }
  }
  return std::nullopt;
}

}  // namespace ceems::gate
