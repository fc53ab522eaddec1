#include "ingest/manager/local/units.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/json.h"
#include "base/time/time_text.h"
#include "base/utf8.h"
#include "ingest/manager/unit_fields.h"

namespace ceems::ingest {
namespace {

constexpr double kBytesOfMebi = 1 << 20;

/// Converts epoch seconds to milliseconds; 0 for values that are not a time between the epoch and
/// the year 5000.
std::int64_t time_of(double seconds) {
  return std::isfinite(seconds) && seconds > 0 && seconds < 1e11 ? std::llround(seconds * 1000) : 0;
}

/// When the life ended, as far as known; 0 if it had not ended by the end of the window.
std::int64_t end_of(const UnitLife& life, const LocalUnitContext& context) {
  if (life.end_ms > 0) {
    return life.end_ms <= context.window.end_ms ? life.end_ms : 0;
  }
  const bool gone = life.last_seen_ms <= context.window.end_ms - context.gone_after_ms;
  return gone ? life.last_seen_ms : 0;
}

/// Milliseconds of the life that count in this window.
std::int64_t time_in_window(const UnitLife& life,
                            std::int64_t end,
                            const LocalUnitContext& context) {
  const auto& window = context.window;
  const std::int64_t until = end > 0 ? end : std::min(window.end_ms, life.last_seen_ms);
  // Continue where the previous window left off. If that window never saw the unit, it counted none
  // of its time; a unit that started not long before this window then counts from its start.
  std::int64_t from = std::min(window.start_ms, life.seen_before_ms);
  if (life.seen_before_ms == 0) {
    const bool recent = life.start_ms > window.start_ms - context.gone_after_ms;
    from = recent ? life.start_ms : window.start_ms;
  }
  return std::max<std::int64_t>(until - std::max(life.start_ms, from), 0);
}

std::string allocation_text(const UnitLife& life) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object().member("cpus", life.cpus).member("gpus", 0);
  json.member("mem", static_cast<std::int64_t>(life.memory_bytes)).end_object();
  return text;
}

}  // namespace

void append_runs(std::vector<Run>& runs,
                 const std::vector<tsdb::Sample>& samples,
                 std::int64_t mark_ms) {
  for (const auto& sample : samples) {
    if (!runs.empty() && sample.time_ms <= runs.back().last_ms) {
      continue;
    }
    if (!runs.empty() && runs.back().value == sample.value) {
      runs.back().last_ms = sample.time_ms;
    } else {
      runs.push_back(
          {.value = sample.value, .first_ms = sample.time_ms, .last_ms = sample.time_ms});
    }
    if (sample.time_ms <= mark_ms) {
      runs.back().last_by_mark_ms = sample.time_ms;
    }
  }
}

std::vector<UnitLife> lives_of(const std::vector<Run>& starts, const std::vector<Run>& ends) {
  std::vector<UnitLife> lives;
  for (const auto& run : starts) {
    const std::int64_t start = time_of(run.value);
    if (start == 0) {
      continue;
    }
    const auto same = std::ranges::find(lives, start, &UnitLife::start_ms);
    if (same != lives.end()) {
      same->last_seen_ms = std::max(same->last_seen_ms, run.last_ms);
      same->seen_before_ms = std::max(same->seen_before_ms, run.last_by_mark_ms);
    } else {
      UnitLife life;
      life.start_ms = start;
      life.last_seen_ms = run.last_ms;
      life.seen_before_ms = run.last_by_mark_ms;
      lives.push_back(std::move(life));
    }
  }
  std::ranges::sort(lives, {}, &UnitLife::start_ms);
  for (const auto& run : ends) {
    const std::int64_t end = time_of(run.value);
    const auto next = std::ranges::upper_bound(lives, end, {}, &UnitLife::start_ms);
    if (end == 0 || next == lives.begin()) {
      continue;
    }
    UnitLife& life = *std::prev(next);
    // A cgroup that seemed to have ended and came back gets its later end.
    if (end > life.end_ms) {
      life.end_ms = end;
      life.end_first_seen_ms = run.first_ms;
    }
  }
  return lives;
}

std::vector<UnitLife> merge_hosts(std::vector<UnitLife> lives) {
  std::ranges::sort(lives, [](const UnitLife& a, const UnitLife& b) {
    return std::tie(a.uuid, a.start_ms, a.origin) < std::tie(b.uuid, b.start_ms, b.origin);
  });
  std::vector<UnitLife> merged;
  for (auto& life : lives) {
    if (!merged.empty() && merged.back().uuid == life.uuid) {
      UnitLife& last = merged.back();
      const std::int64_t until = last.end_ms > 0 ? last.end_ms : last.last_seen_ms;
      if (last.origin != life.origin && life.start_ms < until) {
        const bool both_ended = last.end_ms > 0 && life.end_ms > 0;
        last.end_ms = both_ended ? std::max(last.end_ms, life.end_ms) : 0;
        last.end_first_seen_ms =
            both_ended ? std::max(last.end_first_seen_ms, life.end_first_seen_ms) : 0;
        last.last_seen_ms = std::max(last.last_seen_ms, life.last_seen_ms);
        last.seen_before_ms = std::max(last.seen_before_ms, life.seen_before_ms);
        last.cpus += life.cpus;
        last.memory_bytes += life.memory_bytes;
        last.allocation_known = last.allocation_known && life.allocation_known;
        continue;
      }
    }
    merged.push_back(std::move(life));
  }
  return merged;
}

std::vector<model::Unit> local_units(const std::vector<UnitLife>& lives,
                                     const LocalUnitContext& context,
                                     const TimeZone& zone) {
  const model::Window window = context.window;
  std::vector<model::Unit> units;
  for (const auto& life : lives) {
    if (life.start_ms > window.end_ms) {
      continue;
    }
    const std::int64_t end = end_of(life, context);
    if (end > 0 && end <= window.start_ms) {
      // The previous window has reported it already, unless that window could not see the end. It
      // read samples up to `settle` after its end, and considered a unit ended after `gone_after`
      // without samples.
      const std::int64_t known_at =
          life.end_ms > 0 ? life.end_first_seen_ms : end + context.gone_after_ms;
      const std::int64_t seen_by_last_window =
          life.end_ms > 0 ? window.start_ms + context.settle_ms : window.start_ms;
      if (known_at <= seen_by_last_window) {
        continue;
      }
    }
    model::Unit unit;
    unit.uuid = clean_text(life.uuid);
    unit.name = clean_text(life.name);
    unit.project = context.project;
    unit.username = clean_text(life.username);
    unit.owner_stands_in = !life.owner_known;
    unit.created_at_ts = life.start_ms;
    unit.started_at_ts = life.start_ms;
    unit.ended_at_ts = end;
    print_times(unit, zone, "Unknown");
    unit.state = end > 0 ? "ENDED" : "RUNNING";
    unit.elapsed = elapsed_text(((end > 0 ? end : window.end_ms) - life.start_ms) / 1000);

    unit.allocation = allocation_text(life);
    unit.allocation_stands_in = !life.allocation_known;

    const double seconds = static_cast<double>(time_in_window(life, end, context)) / 1000;
    unit.total_time_seconds =
        allocation_times(seconds, life.cpus, life.memory_bytes / kBytesOfMebi, 0);
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace ceems::ingest
