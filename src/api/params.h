#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/reader.h"

namespace ceems::api {

/// Query parameters of the API, as sent. Multi-valued ones keep their order; empty values are as if
/// they were not there (a client that leaves a field of a form empty means "all").
struct Params {
  std::vector<std::string> clusters, projects, users, uuids, fields, group_by;
  std::string from, to, time_zone, role;
  bool running = false;       ///< present in any form, "running=false" too
  bool experimental = false;  ///< present
  bool terminated = false;    ///< present
};

/// Reads a raw query text. Never fails: unknown keys are ignored.
Params parse_params(std::string_view query);

/// Whole seconds since the epoch, not before year -9999 or after 9999. kInvalidArgument with the
/// text for clients: "query parameter 'from': malformed timestamp".
Result<std::optional<std::int64_t>> parse_seconds(std::string_view name, std::string_view text);

/// The window a request is about: `from` and `to`, a missing one 24 hours from the other, both
/// missing the last 24 hours. kInvalidArgument for malformed times and, with the text "maximum
/// query window exceeded", for one longer than `max_period_ms` (0: no limit).
Result<store::TimeRange> parse_window(const Params& params,
                                      std::int64_t now_ms,
                                      std::int64_t max_period_ms);

/// The window of usage/current: each of `from` and `to` has a default of its own (now - 24 h, now);
/// `from` is rounded down and `to` up to a multiple of 900 s. The limit is checked before rounding.
Result<store::TimeRange> parse_rounded_window(const Params& params,
                                              std::int64_t now_ms,
                                              std::int64_t max_period_ms);

/// The fields asked for, in the order of `all`; all of them when none is. Names that do not exist
/// are left out; kInvalidArgument "invalid query fields" when no valid one is left.
Result<std::vector<std::size_t>> select_fields(std::span<const store::Field> all,
                                               const std::vector<std::string>& names);

}  // namespace ceems::api
