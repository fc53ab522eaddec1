#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "facility/meters.h"

namespace ceems::facility {

/// A ratio of two meters over the hours of a period in which both were read.
struct Ratio {
  /// Below it there is no value: what remains would say little of the whole period.
  static constexpr double kMinCoverage = 0.75;

  std::optional<double> value = {};
  double numerator = 0, denominator = 0;  ///< over the hours that both have
  double hours = 0;                       ///< in which both were read
  double coverage = 0;                    ///< these hours, of all hours of the period
  std::string missing = {};               ///< why there is no value
};

/// A period begins and ends with whole hours (UTC), its end is not included.
struct HourSpan {
  std::int64_t from_ms = 0, to_ms = 0;
};

/// Numerator by denominator, times a factor that converts the unit.
Ratio ratio_of(const Hours& numerator,
               const Hours& denominator,
               const HourSpan& period,
               double scale = 1);

/// Power usage effectiveness (EN 50600-4-2, ISO/IEC 30134-2): all energy of the data centre by that
/// of its IT. Below 1 the meters contradict each other, and there is no value.
Ratio pue_of(const Hours& total, const Hours& it, const HourSpan& period);
/// Water usage effectiveness (ISO/IEC 30134-9): litres of water for each kWh of IT. The meter
/// counts m³.
Ratio wue_of(const Hours& water, const Hours& it, const HourSpan& period);
/// Energy reuse factor (ISO/IEC 30134-6): heat that is used outside, by all energy.
Ratio erf_of(const Hours& reused, const Hours& total, const HourSpan& period);
/// Renewable energy factor (ISO/IEC 30134-3): renewable energy that the site owns and controls, by
/// all energy.
Ratio ref_of(const Hours& renewable, const Hours& total, const HourSpan& period);

}  // namespace ceems::facility
