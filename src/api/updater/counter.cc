#include "api/updater/counter.h"

#include <algorithm>
#include <cmath>

namespace ceems::api {

double counter_increase(std::span<const tsdb::Sample> samples,
                        double before,
                        std::int64_t from_ms,
                        std::int64_t to_ms) {
  double last = before;
  double total = 0;
  for (const auto& sample : samples) {
    if (sample.time_ms > to_ms) {
      break;
    }
    if (!std::isfinite(sample.value) || sample.value < 0) {
      continue;
    }
    if (sample.time_ms > from_ms) {
      total += sample.value >= last ? sample.value - last : sample.value;
    }
    last = sample.value;
  }
  return total;
}

std::optional<double> gauge_mean(std::span<const tsdb::Sample> samples,
                                 std::int64_t from_ms,
                                 std::int64_t to_ms) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& sample : samples) {
    if (sample.time_ms > from_ms && sample.time_ms <= to_ms && std::isfinite(sample.value)) {
      sum += sample.value;
      ++count;
    }
  }
  if (count == 0) {
    return std::nullopt;
  }
  return sum / static_cast<double>(count);
}

double origin_increase(std::vector<CounterSeries> series,
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
  double most = 0;
  for (const auto& sight : sights) {
    most =
        std::max(most, counter_increase(sight.samples, sight.before.value_or(0), from_ms, to_ms));
  }
  return most;
}

}  // namespace ceems::api
