#include "fleet/robust.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ceems::fleet {

double median_of(std::span<const double> values) {
  return statistics_of(values).value_or(Statistics{}).median;
}

double modified_z(double value, const Statistics& peers, double least_mad) {
  constexpr double kNormalMad = 0.6745;  // the MAD of a normal distribution with deviation 1
  const double distance = value - peers.median;
  const double mad = std::max(peers.mad, least_mad * std::abs(peers.median));
  if (mad > 0) {
    return kNormalMad * distance / mad;
  }
  return distance == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), distance);
}

double sign_test(int heads, int n) {
  const int most = std::max(heads, n - heads);
  double tail = 0;
  for (int k = most; k <= n; ++k) {
    tail += std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) -
                     n * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

}  // namespace ceems::fleet
