// Expects runs of families from those before them, as `units/check` does, and says how good that
// was. bench/expectations.py feeds it and prints its table.
//
// Reads a line for each family, the oldest run first: NAME TIME VALUE TIME VALUE ... (seconds).
// Prints for each: NAME JOBS HELD MEDIAN_ERROR BEST, where BEST is the least median error that one
// fixed expectation for the same jobs could have had, chosen afterwards.

#include "report/expectation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace {

constexpr std::size_t kLeastBefore = 5;
constexpr std::size_t kMaxBefore = 60;      // as api/check/past_runs.cc
constexpr double kBack = 90.0 * 24 * 3600;  // the same

struct Run {
  double time = 0, value = 0;
};

/// The values are not empty.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_error(double expected, const std::vector<double>& values) {
  std::vector<double> errors;
  errors.reserve(values.size());
  std::ranges::transform(values, std::back_inserter(errors),
                         [expected](double value) { return std::abs(expected / value - 1); });
  return median(std::move(errors));
}

double best_error(const std::vector<double>& values) {
  double best = std::numeric_limits<double>::max();
  for (const double value : values) {
    // The best expectation is one of the values or lies a little below one.
    for (const double part : {1.0, 0.95, 0.9, 0.85, 0.8}) {
      best = std::min(best, median_error(part * value, values));
    }
  }
  return best;
}

void judge(const std::string& name, const std::vector<Run>& runs) {
  std::size_t held = 0;
  std::vector<double> expected_values;
  std::vector<double> errors;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<double> before;
    for (std::size_t j = i; j-- > 0 && before.size() < kMaxBefore;) {
      if (runs[i].time - runs[j].time <= kBack) {
        before.push_back(runs[j].value);
      }
    }
    const auto range = before.size() < kLeastBefore ? std::nullopt : ceems::report::expect(before);
    if (range) {
      held += runs[i].value >= range->low && runs[i].value <= range->high ? 1 : 0;
      expected_values.push_back(runs[i].value);
      errors.push_back(std::abs(range->mid / runs[i].value - 1));
    }
  }
  if (errors.empty()) {
    fmt::print("{} 0 0 0 0\n", name);
    return;
  }
  fmt::print("{} {} {} {:.6f} {:.6f}\n", name, errors.size(), held, median(errors),
             best_error(expected_values));
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    std::vector<Run> runs;
    for (Run run; words >> run.time >> run.value;) {
      runs.push_back(run);
    }
    judge(name, runs);
  }
  return 0;
}
