#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/utf8.h"

namespace ceems::cacct {

/// A unit, or the usage of a user and project, as the API server returns it. Texts are safe for a
/// terminal: control characters, bidirectional overrides and malformed UTF-8 became U+FFFD.
class Record {
 public:
  using Numbers = std::vector<std::pair<std::string, double>>;  ///< sorted by name

  std::map<std::string, std::string, std::less<>> texts;
  std::map<std::string, Numbers, std::less<>> metrics;

  /// "" if it is missing.
  [[nodiscard]] std::string_view text(std::string_view tag) const;
  /// The numbers of a metric, or null if the record has none.
  [[nodiscard]] const Numbers* numbers(std::string_view tag) const;
  /// A member that is a whole number, e.g. `started_at_ts`; 0 if it is missing or something else.
  [[nodiscard]] std::int64_t whole(std::string_view tag) const;
};

/// Parses the body of an answer of /api/v1/units or /api/v1/usage. kUnavailable with the server's
/// reason if its status is "error"; kParse for anything that is not such an answer, or that nests
/// deeper than 16 levels.
Result<std::vector<Record>> parse_answer(std::string body);

/// terminal_safe() for several lines, whose ends it keeps.
std::string safe_lines(std::string_view text);

}  // namespace ceems::cacct
