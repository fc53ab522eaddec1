#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace date {
class time_zone;  // NOLINT(readability-identifier-naming): named by the library
}

namespace ceems {

/// A zone of the IANA time zone database, and its wall-clock texts. Cheap to copy; the database
/// lives as long as the program. Times are epoch milliseconds. Safe for concurrent use.
class TimeZone {
 public:
  TimeZone() = default;  ///< UTC

  /// "" and "UTC" are UTC, "Local" is the zone of the machine (UTC if it has no /etc/localtime),
  /// anything else must be an IANA name.
  /// The error is kInvalidArgument "unknown time zone x".
  static Result<TimeZone> find(std::string_view name);

  /// LOCAL form: 2031-04-05T06:07:08
  [[nodiscard]] std::string local(std::int64_t ms) const;
  /// LOCALZ form: 2031-04-05T06:07:08+0200
  [[nodiscard]] std::string local_with_offset(std::int64_t ms) const;
  /// Parses the LOCAL form. A time that occurs twice (autumn) is the later moment, so that nothing
  /// is fetched again. A time that was skipped (spring) is the moment of the change.
  [[nodiscard]] std::optional<std::int64_t> parse_local(std::string_view text) const;
  /// The first moment of the local day that contains `ms`.
  [[nodiscard]] std::int64_t day_start(std::int64_t ms) const;
  /// The name of that day in the LOCAL form: 2031-04-05T00:00:00, even if midnight was skipped.
  [[nodiscard]] std::string day(std::int64_t ms) const;

 private:
  const date::time_zone* zone_ = nullptr;  // null: UTC
};

}  // namespace ceems
