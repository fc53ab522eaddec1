#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/tsdb/fleet.h"
#include "base/result.h"

namespace ceems::api {

// The carbon intensity of the grid in the next hours, judged by the weeks before. No provider's own
// forecast is among the series that Prometheus has.

/// g/kWh in one hour: the median and the range of the same hour of the last four weeks. Without
/// three of them, nothing is known.
struct ForecastHour {
  std::int64_t from_ms = 0;
  std::optional<double> median = {};
  double low = 0, high = 0;
};

inline constexpr std::size_t kForecastHours = 48;

/// The next hours from the first full one after `now_ms` on, and whose numbers they are.
struct GridOutlook {
  std::vector<ForecastHour> hours = {};  ///< none: nothing is known of any
  std::string provider = {}, country = {};
  bool varies = false;  ///< whether one hour is better than another
};

/// Asks the TSDB for the hours of the weeks before. Passes on its errors.
Result<GridOutlook> read_outlook(Fleet& fleet, std::int64_t now_ms);

/// Some hours in a row and their means.
struct GridWindow {
  std::int64_t from_ms = 0;
  double mean = 0, low = 0, high = 0;
  std::optional<double> next = {};  ///< the mean if it began with the first hour
};
/// The window of this length with the least mean, of those that begin in the first `starts` hours;
/// of equal ones the first. Nothing if each has an hour of which nothing is known.
std::optional<GridWindow> greenest(const std::vector<ForecastHour>& hours,
                                   std::size_t length,
                                   std::size_t starts = kForecastHours);

}  // namespace ceems::api
