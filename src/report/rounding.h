#pragma once

#include <cmath>

#include "report/report.h"

namespace ceems::report {

// How numbers are rounded once, before any form shows them. Pure functions.

/// To this many significant digits.
inline double significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) {
    return value;
  }
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}
inline void round_significant(Number& number, int digits) {
  if (number) {
    number = significant(*number, digits);
  }
}

/// To whole percent.
inline double rounded_share(double share) {
  return std::round(share * 100) / 100;  // a step of 0.01 would leave 0.07 as 0.07000000000000001
}
inline void round_share(Number& share) {
  if (share) {
    share = rounded_share(*share);
  }
}

}  // namespace ceems::report
