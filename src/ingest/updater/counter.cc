#include "ingest/updater/counter.h"

#include <algorithm>
#include <cmath>

namespace ceems::ingest {

namespace {

double sum_of(const std::vector<Increment>& increments) {
  double sum = 0;
  for (const auto& increment : increments) {
    sum += increment.value;
  }
  return sum;
}

}  // namespace

std::vector<Increment> counter_increments(std::span<const tsdb::Sample> samples,
                                          double before,
                                          std::int64_t from_ms,
                                          std::int64_t to_ms) {
  double last = before;
  std::vector<Increment> increments;
  for (const auto& sample : samples) {
    if (sample.time_ms > to_ms) {
      break;
    }
    if (!std::isfinite(sample.value) || sample.value < 0) {
      continue;
    }
    const double value = sample.value >= last ? sample.value - last : sample.value;
    if (sample.time_ms > from_ms && value > 0) {
      increments.push_back({.time_ms = sample.time_ms, .value = value});
    }
    last = sample.value;
  }
  return increments;
}

std::optional<GaugeArea> gauge_area(std::span<const tsdb::Sample> samples,
                                    Life life,
                                    std::int64_t from_ms,
                                    std::int64_t to_ms,
                                    std::int64_t reach_ms) {
  const bool ended = life.end_ms > 0 && life.end_ms <= to_ms;
  const auto within_life = [&](std::int64_t time) {
    return life.end_ms > 0 ? std::min(time, life.end_ms) : time;
  };
  GaugeArea area;
  const tsdb::Sample* before = nullptr;
  bool reached_from_ahead = false;  // the next sample stands for the end of the window
  for (const auto& sample : samples) {
    if (!std::isfinite(sample.value) || sample.time_ms <= life.start_ms) {
      continue;
    }
    if (sample.time_ms > to_ms) {
      reached_from_ahead = sample.time_ms - reach_ms < to_ms;
      break;
    }
    if (sample.time_ms > from_ms) {
      const std::int64_t known = std::max({before == nullptr ? life.start_ms : before->time_ms,
                                           sample.time_ms - reach_ms, life.start_ms});
      const std::int64_t since = within_life(known);
      area.value_ms += sample.value * static_cast<double>(within_life(sample.time_ms) - since);
      const std::int64_t begin =
          std::max({before == nullptr ? life.start_ms : before->time_ms, from_ms, life.start_ms});
      area.unseen_ms += std::max<std::int64_t>(since - begin, 0);
    }
    before = &sample;
  }
  if (before == nullptr) {
    return reached_from_ahead ? std::optional(area) : std::nullopt;
  }
  if (ended && before->time_ms < life.end_ms) {
    area.value_ms +=
        before->value * static_cast<double>(std::min(life.end_ms - before->time_ms, reach_ms));
  }
  if (before->time_ms <= from_ms && within_life(to_ms) - before->time_ms > reach_ms &&
      !reached_from_ahead) {
    return std::nullopt;
  }
  return area;
}

std::vector<Increment> origin_increments(std::vector<CounterSeries> series,
                                         std::int64_t from_ms,
                                         std::int64_t to_ms) {
  std::ranges::sort(series, {}, [](const CounterSeries& s) { return s.samples.front().time_ms; });
  std::vector<CounterSeries> sights;
  for (auto& next : series) {
    const auto earlier = std::ranges::find_if(sights, [&next](const CounterSeries& sight) {
      return sight.samples.back().time_ms < next.samples.front().time_ms;
    });
    if (earlier == sights.end()) {
      sights.push_back(std::move(next));
    } else {
      earlier->samples.insert(earlier->samples.end(), next.samples.begin(), next.samples.end());
    }
  }
  std::vector<Increment> most;
  for (const auto& sight : sights) {
    auto increments = counter_increments(sight.samples, sight.before.value_or(0), from_ms, to_ms);
    if (sum_of(increments) > sum_of(most)) {
      most = std::move(increments);
    }
  }
  return most;
}

}  // namespace ceems::ingest
