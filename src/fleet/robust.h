#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/statistics.h"

namespace ceems::fleet {

// Statistics that a few wild values do not move, for detectors that compare devices and nodes of
// one class.

/// One value for each window of a unit; nothing where it is not known, which is never taken as 0.
using WindowValues = std::vector<std::optional<double>>;

/// A modified z-score beyond this is an outlier (B. Iglewicz and D. Hoaglin, "How to Detect and
/// Handle Outliers", 1993, chapter 3).
inline constexpr double kOutlier = 3.5;
/// The least median absolute deviation that counts, as a share of the median. Without it, values
/// that agree to the last digit make an outlier of one that differs by nothing that matters.
inline constexpr double kLeastMad = 0.02;

/// Devices or nodes of one class that a comparison needs: with fewer, there is nothing to compare
/// with.
inline constexpr std::size_t kLeastPeers = 4;

/// The median of the finite values; 0 without any.
double median_of(std::span<const double> values);

/// 0.6745 · (value − median) ÷ MAD, the modified z-score of Iglewicz and Hoaglin, with at least
/// `least_mad` of the median in place of the MAD. Infinite where that is 0 and the distance is not.
double modified_z(double value, const Statistics& peers, double least_mad = kLeastMad);

/// The two-sided sign test: the probability that of `n` tosses of a fair coin at least
/// max(heads, n - heads) fall on the same side. 1 without tosses.
double sign_test(int heads, int n);

}  // namespace ceems::fleet
