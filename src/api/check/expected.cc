#include "api/check/expected.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/statistics.h"
#include "base/time/durations.h"
#include "report/family.h"

namespace ceems::api {
namespace {

using report::Number;
using report::Range;

std::optional<Range> range_of(const std::vector<PastRun>& runs, Number PastRun::* number) {
  std::vector<double> values;
  for (const PastRun& run : runs) {
    if (const Number& value = run.*number; value && values.size() < report::kMaxExpectation) {
      values.push_back(*value);
    }
  }
  return report::expect(values);
}

/// The part of the run up to the limit; nothing if it ended before.
Number part_within(const Number& limit, const PastRun& run) {
  return limit && *limit > 0 && run.elapsed && *run.elapsed > *limit ? Number(*limit / *run.elapsed)
                                                                     : std::nullopt;
}

/// The runs as if they had ended at the limit.
std::vector<PastRun> ended_at(const Number& limit, std::vector<PastRun> runs) {
  for (PastRun& run : runs) {
    if (const Number part = part_within(limit, run)) {
      for (Number* one : {&run.elapsed, &run.kwh, &run.grams}) {
        *one = *one ? Number(**one * *part) : std::nullopt;
      }
    }
  }
  return runs;
}

/// No run lasts longer than its limit.
void limit_to(const Number& most, std::optional<Range>& range) {
  if (most && range) {
    for (double* one : {&range->mid, &range->low, &range->high}) {
      *one = std::min(*one, *most);
    }
  }
}

/// The cost of a run that lasts so long and uses so much.
Number cost_of(const JobRequest& request,
               Costs& costs,
               std::int64_t now_ms,
               const Number& elapsed,
               const Number& kwh) {
  if (!elapsed) {
    return std::nullopt;
  }
  constexpr double kMaxMs = 366.0 * static_cast<double>(kDayMs);
  const double hours = *elapsed / kHourSeconds;
  const double ms = std::min(*elapsed * static_cast<double>(kSecondMs), kMaxMs);
  return costs.of(request.cluster_id, now_ms, now_ms + static_cast<std::int64_t>(ms), kwh,
                  request.cpus.value_or(0) * hours, request.gpus.value_or(0) * hours);
}

std::optional<Range> cost_range(const Expected& expected,
                                const JobRequest& request,
                                Costs& costs,
                                std::int64_t now_ms) {
  const auto cost = [&](double Range::* end) {
    const auto at = [end](const std::optional<Range>& range) {
      return range ? Number(*range.*end) : std::nullopt;
    };
    return cost_of(request, costs, now_ms, at(expected.elapsed), at(expected.kwh));
  };
  const Number mid = cost(&Range::mid);
  const Number low = cost(&Range::low);
  const Number high = cost(&Range::high);
  return mid && low && high ? std::optional(Range{.mid = *mid, .low = *low, .high = *high})
                            : std::nullopt;
}

Number median_of(const std::vector<double>& values) {
  const auto found = statistics_of(values);
  return found && found->median > 0 ? Number(found->median) : std::nullopt;
}

}  // namespace

Expected expect_request(const PastRuns& past,
                        const JobRequest& request,
                        Costs* costs,
                        std::int64_t now_ms) {
  const std::vector<PastRun> runs = ended_at(request.time_limit, past.runs);
  Expected expected{.wait = range_of(runs, &PastRun::wait),
                    .elapsed = range_of(runs, &PastRun::elapsed),
                    .kwh = range_of(runs, &PastRun::kwh),
                    .grams = range_of(runs, &PastRun::grams)};
  if (past.basis == Basis::kFamily) {
    const auto last = std::span(past.runs).first(std::min(past.runs.size(), report::kMaxFamily));
    expected.over_limit =
        static_cast<std::size_t>(std::ranges::count_if(last, [&](const PastRun& run) {
          return part_within(request.time_limit, run).has_value();
        }));
  }
  limit_to(request.time_limit, expected.elapsed);
  if (costs != nullptr && costs->any()) {
    expected.cost = cost_range(expected, request, *costs, now_ms);
  }
  return expected;
}

Unused unused_by(const std::vector<store::FamilyRun>& family) {
  std::vector<double> gpus;
  std::vector<double> cpus;
  std::vector<double> memory;
  std::vector<double> time;
  const auto add = [](std::vector<double>& values, double value) {
    values.push_back(std::max(value, 0.0));
  };
  for (std::size_t i = 0; i < family.size() && i < report::kMaxFamily; ++i) {
    const store::FamilyRun& run = family[i];
    if (run.measured && run.numbers.gpus > 0) {
      add(gpus, static_cast<double>(run.numbers.gpus_unused));
    }
    if (run.cpus && run.cpu_use) {
      add(cpus, *run.cpus * (1 - *run.cpu_use));
    }
    if (run.memory && *run.memory > 0 && run.numbers.mem_peak) {
      add(memory, *run.memory - *run.numbers.mem_peak * run.nodes.value_or(1));
    }
    if (run.time_limit && *run.time_limit > 0) {
      add(time, *run.time_limit - static_cast<double>(run.ended_at_ts - run.key.started_at_ts) /
                                      static_cast<double>(kSecondMs));
    }
  }
  return {.gpus = median_of(gpus),
          .cpus = median_of(cpus),
          .memory = median_of(memory),
          .time_limit = median_of(time)};
}

}  // namespace ceems::api
