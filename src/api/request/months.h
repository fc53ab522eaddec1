#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time/time_zone.h"

namespace ceems::api {

/// A calendar month in a time zone: its first moment and that of the next one, in epoch
/// milliseconds.
struct Month {
  std::string name = {};  ///< "2026-11"
  std::int64_t from_ms = 0, to_ms = 0;
};

/// kInvalidArgument with a text for clients if the text is not a month from 1971 to 9998.
Result<Month> month_named(std::string_view name, const TimeZone& zone);
/// The month that contains a moment.
Month month_at(std::int64_t ms, const TimeZone& zone);
Month month_before(const Month& month, const TimeZone& zone);

}  // namespace ceems::api
