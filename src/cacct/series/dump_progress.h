#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::cacct {

/// The labels of a time series, sorted by name; the name of the metric is `__name__`.
using SeriesLabels = std::map<std::string, std::string, std::less<>>;

/// 16 hexadecimal digits that identify a time series as in Prometheus: FNV-1a of 64 bits
/// (http://www.isthe.com/chongo/tech/comp/fnv/) over name, 0xFF, value, 0xFF of each label.
std::string fingerprint(const SeriesLabels& labels);

/// A series that has been written, completely or in part.
struct WrittenSeries {
  SeriesLabels labels;
  std::size_t item = 0;     ///< the pair of unit and query that gave it
  std::uint64_t bytes = 0;  ///< of its file; what is behind them was not completed
  /// Time of the last sample written. Servers that move the ends of a range to a multiple of the
  /// step give it again with the next piece.
  std::int64_t last_ms = std::numeric_limits<std::int64_t>::min();
};

/// How far a dump has come: the content of progress.json.
struct DumpProgress {
  std::string key;                              ///< of units, queries and options
  std::size_t item = 0;                         ///< the pair of unit and query in progress
  std::int64_t next_ms = 0;                     ///< the first time of it that is missing; 0: all
  std::uint64_t samples = 0;                    ///< written so far
  std::map<std::string, WrittenSeries> series;  ///< by fingerprint
  std::vector<std::string> failed;
};

std::string to_json(const DumpProgress& progress);
/// kParse for anything that to_json() did not write.
Result<DumpProgress> parse_progress(std::string_view text);

}  // namespace ceems::cacct
