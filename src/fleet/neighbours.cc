#include "fleet/neighbours.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "base/statistics.h"

namespace ceems::fleet {
namespace {

constexpr std::size_t kHalfBaseline = 20;  // windows on each side of a running median
constexpr std::size_t kLeastOfBaseline = 3;
constexpr double kDeviationOfMad = 1.4826;
constexpr double kDeviations = 2;
constexpr std::size_t kRun = 5;
constexpr std::size_t kLeastOfRun = 3;
constexpr double kLeastCpus = 0.25;
constexpr std::size_t kCorrelated = 10;
constexpr double kLeastCorrelation = 0.35;
constexpr std::size_t kLeastBins = 5;
constexpr double kLeastDifference = 0.1;
constexpr double kLeastRankSum = 5;
constexpr std::size_t kLeastTimes = 3;
constexpr double kLeastAgreeing = 0.8;  // of the times
constexpr std::size_t kBeside = 5;      // windows before and after the suspect begins or pauses

struct Signal {
  std::string_view name;
  WindowValues NodeUnit::* values;
  double least;  // a difference that matters
};
constexpr std::array<Signal, 3> kSignals{{{"cpi", &NodeUnit::cpi, 0},
                                          {"io", &NodeUnit::io_stalled, 0.02},
                                          {"memory", &NodeUnit::memory_stalled, 0.02}}};

struct Activity {
  std::string_view name;
  WindowValues NodeUnit::* values;
  double least;  // less is nothing that another unit would notice
};
constexpr std::array<Activity, 3> kActivities{{{"cpu", &NodeUnit::cpus, 0.25},
                                               {"bytes", &NodeUnit::bytes, 1e6},
                                               {"requests", &NodeUnit::requests, 10}}};

std::optional<double> finite_at(const WindowValues& values, std::size_t i) {
  const auto value = i < values.size() ? values[i] : std::nullopt;
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::vector<double> known_of(const WindowValues& values) {
  std::vector<double> known;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (const auto value = finite_at(values, i)) {
      known.push_back(*value);
    }
  }
  return known;
}

using ActiveTimes = std::vector<std::optional<bool>>;

/// The values without their running median, which is that of the windows in which `but` is not.
WindowValues residuals(const WindowValues& values, const ActiveTimes& but = {}) {
  WindowValues out(values.size());
  std::vector<double> around;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = finite_at(values, i);
    if (!value) {
      continue;
    }
    around.clear();
    const std::size_t begin = i > kHalfBaseline ? i - kHalfBaseline : 0;
    for (std::size_t k = begin; k < std::min(values.size(), i + kHalfBaseline + 1); ++k) {
      const auto near = finite_at(values, k);
      if (near && (k >= but.size() || !but[k].value_or(true))) {
        around.push_back(*near);
      }
    }
    if (around.size() >= kLeastOfBaseline) {
      out[i] = *value - median_of(around);
    }
  }
  return out;
}

/// The last windows of runs in which the signal of the victim is odd.
std::vector<std::size_t> odd_runs(const WindowValues& signal,
                                  const WindowValues& rest,
                                  const WindowValues& cpus,
                                  double least) {
  // From minute to minute, because a suspect that is active for a third of the time would widen the
  // spread of all values.
  std::vector<double> changes;
  for (std::size_t i = 1; i < signal.size(); ++i) {
    const auto before = finite_at(signal, i - 1);
    const auto now = finite_at(signal, i);
    if (before && now) {
      changes.push_back(std::abs(*now - *before) / std::numbers::sqrt2);
    }
  }
  const double mad =
      std::max(median_of(changes), kLeastMad * std::abs(median_of(known_of(signal))));
  const double limit = std::max(kDeviations * kDeviationOfMad * mad, least);
  std::vector<std::size_t> ends;
  for (std::size_t end = kRun; end <= rest.size(); ++end) {
    std::size_t odd = 0;
    for (std::size_t i = end - kRun; i < end; ++i) {
      const auto value = finite_at(rest, i);
      odd += value && *value > limit && finite_at(cpus, i).value_or(0) >= kLeastCpus ? 1 : 0;
    }
    if (odd >= kLeastOfRun) {
      ends.push_back(end - 1);
    }
  }
  return ends;
}

/// Pearson's r over the windows up to `last`, of which all must be known.
std::optional<double> correlation(const WindowValues& a, const WindowValues& b, std::size_t last) {
  if (last + 1 < kCorrelated) {
    return std::nullopt;
  }
  double sum_a = 0;
  double sum_b = 0;
  for (std::size_t i = last + 1 - kCorrelated; i <= last; ++i) {
    const auto x = finite_at(a, i);
    const auto y = finite_at(b, i);
    if (!x || !y) {
      return std::nullopt;
    }
    sum_a += *x;
    sum_b += *y;
  }
  constexpr auto kN = static_cast<double>(kCorrelated);
  double together = 0;
  double of_a = 0;
  double of_b = 0;
  for (std::size_t i = last + 1 - kCorrelated; i <= last; ++i) {
    const double x = a[i].value_or(0) - sum_a / kN;
    const double y = b[i].value_or(0) - sum_b / kN;
    together += x * y;
    of_a += x * x;
    of_b += y * y;
  }
  return of_a > 0 && of_b > 0 ? std::optional(together / std::sqrt(of_a * of_b)) : std::nullopt;
}

/// When the unit is active: above the middle of what it does least and most. Nothing if it does
/// much the same all the time.
std::optional<ActiveTimes> active_times(const WindowValues& activity, double least) {
  std::vector<double> sorted = known_of(activity);
  constexpr std::size_t kTenth = 10;
  if (sorted.size() < 2 * kLeastBins) {
    return std::nullopt;
  }
  std::ranges::sort(sorted);
  const double low = sorted[sorted.size() / kTenth];
  const double high = sorted[sorted.size() - 1 - sorted.size() / kTenth];
  if (high < least || high < 2 * low) {
    return std::nullopt;
  }
  ActiveTimes active(activity.size());
  for (std::size_t i = 0; i < activity.size(); ++i) {
    if (const auto value = finite_at(activity, i)) {
      active[i] = *value > (low + high) / 2;
    }
  }
  return active;
}

/// The rank sum of `high` among both as a z-score (Mann and Whitney), with mean ranks of ties.
double rank_sum_z(const std::vector<double>& high, const std::vector<double>& low) {
  std::vector<std::pair<double, bool>> all;
  all.reserve(high.size() + low.size());
  for (const double value : high) {
    all.emplace_back(value, true);
  }
  for (const double value : low) {
    all.emplace_back(value, false);
  }
  std::ranges::sort(all);
  double ranks = 0;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    while (end < all.size() && all[end].first == all[i].first) {
      ++end;
    }
    const double rank = static_cast<double>(i + 1 + end) / 2;
    for (; i < end; ++i) {
      ranks += all[i].second ? rank : 0;
    }
  }
  const auto n = static_cast<double>(high.size());
  const auto m = static_cast<double>(low.size());
  return (ranks - n * (n + m + 1) / 2) / std::sqrt(n * m * (n + m + 1) / 12);
}

/// How often the suspect began or paused, and how often the signal was higher on the side on which
/// it was active.
struct Times {
  std::size_t all = 0, agreeing = 0;
};

Times times_of(const WindowValues& rest, const ActiveTimes& active) {
  Times times;
  const auto beside = [&](std::size_t from, int step) {
    std::vector<double> values;
    for (std::size_t i = from;
         i < rest.size() && values.size() < kBeside && active[i] == active[from];
         i += static_cast<std::size_t>(step)) {
      if (const auto value = finite_at(rest, i)) {
        values.push_back(*value);
      }
    }
    return values;
  };
  for (std::size_t i = 1; i < active.size() && i < rest.size(); ++i) {
    if (!active[i] || !active[i - 1] || active[i] == active[i - 1]) {
      continue;
    }
    const auto before = beside(i - 1, -1);  // the index wraps below 0, which ends it
    const auto after = beside(i, 1);
    if (before.size() < 2 || after.size() < 2) {
      continue;
    }
    ++times.all;
    const double rise = median_of(after) - median_of(before);
    times.agreeing += (active[i].value_or(false) ? rise : -rise) > 0 ? 1 : 0;
  }
  return times;
}

/// The victim's side of a comparison.
struct Victim {
  const NodeUnit* unit;
  const Signal* signal;
  WindowValues rest;
  std::vector<std::size_t> odd;
};

std::optional<std::pair<double, Neighbour>> compared(const Victim& victim,
                                                     const NodeUnit& suspect,
                                                     const Activity& activity) {
  const WindowValues& does = suspect.*activity.values;
  double highest = 0;
  for (const std::size_t last : victim.odd) {
    highest = std::max(highest, correlation(victim.rest, does, last).value_or(0));
  }
  if (highest < kLeastCorrelation) {
    return std::nullopt;
  }
  const auto active = active_times(does, activity.least);
  if (!active) {
    return std::nullopt;
  }
  const WindowValues& signal = victim.unit->*victim.signal->values;
  const WindowValues beyond = residuals(signal, *active);
  std::array<std::vector<double>, 2> rest;
  std::array<std::vector<double>, 2> raw;
  for (std::size_t i = 0; i < std::min(active->size(), signal.size()); ++i) {
    const auto value = finite_at(beyond, i);
    if (value && (*active)[i] && finite_at(victim.unit->cpus, i).value_or(0) >= kLeastCpus) {
      const std::size_t with = (*active)[i].value_or(false) ? 1 : 0;
      rest.at(with).push_back(*value);
      raw.at(with).push_back(signal[i].value_or(0));
    }
  }
  if (std::min(rest[0].size(), rest[1].size()) < kLeastBins) {
    return std::nullopt;
  }
  const double without = median_of(raw[0]);
  const double difference = median_of(rest[1]) - median_of(rest[0]);
  if (difference < std::max(kLeastDifference * without, victim.signal->least) || difference <= 0) {
    return std::nullopt;
  }
  const double z = rank_sum_z(rest[1], rest[0]);
  const Times times = times_of(beyond, *active);
  if (z < kLeastRankSum || times.all < kLeastTimes ||
      static_cast<double>(times.agreeing) < kLeastAgreeing * static_cast<double>(times.all)) {
    return std::nullopt;
  }
  return std::pair(z, Neighbour{.victim = victim.unit->uuid,
                                .suspect = suspect.uuid,
                                .signal = victim.signal->name,
                                .activity = activity.name,
                                .with = median_of(raw[1]),
                                .without = without,
                                .correlation = highest,
                                .bins_with = raw[1].size(),
                                .bins_without = raw[0].size(),
                                .times = times.all});
}

}  // namespace

std::vector<Neighbour> find_neighbours(std::span<const NodeUnit> units) {
  std::vector<std::pair<double, Neighbour>> found;
  for (const NodeUnit& unit : units) {
    for (const Signal& signal : kSignals) {
      const WindowValues& values = unit.*signal.values;
      Victim victim{.unit = &unit, .signal = &signal, .rest = residuals(values), .odd = {}};
      victim.odd = odd_runs(values, victim.rest, unit.cpus, signal.least);
      for (const NodeUnit& suspect : units) {
        if (victim.odd.empty() || &suspect == &unit) {
          continue;
        }
        for (const Activity& activity : kActivities) {
          auto pair = compared(victim, suspect, activity);
          const auto same = [&](const auto& other) {
            return other.second.victim == unit.uuid && other.second.suspect == suspect.uuid;
          };
          if (const auto known = std::ranges::find_if(found, same); pair && known == found.end()) {
            found.push_back(*std::move(pair));
          } else if (pair && pair->first > known->first) {
            *known = *std::move(pair);
          }
        }
      }
      if (signal.values == &NodeUnit::cpi && !known_of(values).empty()) {
        break;  // a unit that waits shows it in its CPI as well
      }
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater(),
                           [](const auto& pair) { return pair.first; });
  std::vector<Neighbour> rows;
  rows.reserve(found.size());
  for (auto& [z, row] : found) {
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace ceems::fleet
