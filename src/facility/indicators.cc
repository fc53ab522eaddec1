#include "facility/indicators.h"

#include <fmt/format.h>

#include "base/time/durations.h"

namespace ceems::facility {

Ratio ratio_of(const Hours& numerator,
               const Hours& denominator,
               const HourSpan& period,
               double scale) {
  Ratio ratio;
  for (auto hour = numerator.lower_bound(period.from_ms);
       hour != numerator.end() && hour->first < period.to_ms; ++hour) {
    if (const auto other = denominator.find(hour->first); other != denominator.end()) {
      ratio.numerator += hour->second;
      ratio.denominator += other->second;
      ratio.hours += 1;
    }
  }
  const auto expected = static_cast<double>(period.to_ms - period.from_ms) / kHourMs;
  ratio.coverage = expected > 0 ? ratio.hours / expected : 0;
  if (numerator.empty() || denominator.empty()) {
    ratio.missing = "a meter is missing";
  } else if (ratio.coverage < Ratio::kMinCoverage) {
    ratio.missing =
        fmt::format("both meters were read in {:.1f} % of the hours, {:.0f} % are needed",
                    100 * ratio.coverage, 100 * Ratio::kMinCoverage);
  } else if (ratio.denominator <= 0) {
    ratio.missing = "the meter that is divided by counted nothing";
  } else {
    ratio.value = ratio.numerator * scale / ratio.denominator;
  }
  return ratio;
}

Ratio pue_of(const Hours& total, const Hours& it, const HourSpan& period) {
  Ratio ratio = ratio_of(total, it, period);
  if (ratio.value && *ratio.value < 1) {
    ratio.missing = "the meter of the IT counted more than that of the whole data centre";
    ratio.value.reset();
  }
  return ratio;
}

Ratio wue_of(const Hours& water, const Hours& it, const HourSpan& period) {
  constexpr double kLitres = 1000;  // of a m³
  return ratio_of(water, it, period, kLitres);
}

Ratio erf_of(const Hours& reused, const Hours& total, const HourSpan& period) {
  return ratio_of(reused, total, period);
}

Ratio ref_of(const Hours& renewable, const Hours& total, const HourSpan& period) {
  return ratio_of(renewable, total, period);
}

}  // namespace ceems::facility
