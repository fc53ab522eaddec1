#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace ceems::report {

// What the next run of a job will probably use, judged by its earlier runs.
//
// The expected value is the median of the last kMaxFamily runs. The range should hold four of five
// runs:
// - Each of the last runs is set against the median of the runs before it, as if it had been
//   expected then. With at least kLeastResiduals such ratios, the range reaches from their 10th to
//   their 90th percentile: order statistics at the ranks 0.1 (m + 1) and 0.9 (m + 1), between which
//   the next of m + 1 exchangeable values falls in 80 % of cases, however they are distributed
//   (S. S. Wilks, "Determination of Sample Sizes for Setting Tolerance Limits", 1941). Families
//   that drift have ratios on one side of 1, which the range follows.
// - With fewer, the logarithms count as normally distributed, with a spread of kUsualSpread that
//   weighs as much as kUsualRuns runs: the range is the posterior prediction of A. Gelman et al.,
//   "Bayesian Data Analysis", chapter 3.3, from quantiles of Student's t distribution, with the
//   median absolute deviation in place of the standard one, which an outlier would blow up. It
//   widens as runs get fewer.
// How often ranges held is measured by expectation_test.cc, and by the server for its own units.

struct Range {
  double mid = 0, low = 0, high = 0;
};

/// The share of runs that a range should hold.
inline constexpr double kHeldShare = 0.8;
/// As many values as expect() can use.
inline constexpr std::size_t kMaxExpectation = 40;

/// The range of the next value; `values` are of the earlier runs, the newest first. Values that are
/// not finite or negative are left out. Nothing without values.
std::optional<Range> expect(std::span<const double> values);

/// How often ranges held.
struct Held {
  std::size_t of = 0;    ///< runs that were expected
  std::size_t held = 0;  ///< of which the value was in the range
};

/// Expects each of the newest `most` runs of a family from those before it, if these are at least
/// `least`. `values` are the newest first.
Held hold_back(std::span<const double> values, std::size_t least, std::size_t most);

}  // namespace ceems::report
