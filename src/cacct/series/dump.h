#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cacct/series/config.h"
#include "tsdb/client.h"

namespace ceems::cacct {

enum class SeriesFormat : std::uint8_t {
  kCsv,        ///< a line "timestamp,value", then one line for each sample
  kJsonLines,  ///< {"timestamp":...,"value":...} for each sample; NaN and infinities as strings
};

struct DumpOptions {
  std::string directory;
  SeriesFormat format = SeriesFormat::kCsv;
  std::chrono::milliseconds step{10'000};
  std::chrono::milliseconds lookback{60'000};
  tsdb::QueryVariables variables;  ///< intervals, without `uuids` and `range`
  bool describe = false;           ///< metadata has `metric` and `help` from the configuration
  /// Called now and then with what is being fetched and the part that is done (0...1).
  std::function<void(const std::string& what, double done)> progress = {};
};

/// A unit whose time series are wanted.
struct DumpUnit {
  std::string uuid;
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
  bool running = false;  ///< `end_ms` is now, so it differs when an interrupted dump goes on
};

struct DumpOutcome {
  std::size_t series = 0;
  std::uint64_t samples = 0;
  bool resumed = false;             ///< an interrupted dump was continued
  std::vector<std::string> failed;  ///< why a query of a unit gave nothing, one line each
};

/// Writes the time series of each query for each unit into a directory, which is created with mode
/// 0700 if it does not exist: a file FINGERPRINT.csv (or .jsonl) for each series, and metadata.json
/// with the labels of each. Existing files of these names are replaced.
///
/// A query is sent in pieces of time, so memory does not grow with the number of samples. What has
/// been written so far is kept in progress.json; if that file is found and belongs to the same
/// units, queries and options, the dump continues where it was interrupted, even by SIGKILL.
///
/// A query that fails is reported in the outcome. The result fails if a file cannot be written.
Result<DumpOutcome> dump_series(tsdb::Client& client,
                                const std::vector<DumpUnit>& units,
                                const std::vector<const SeriesQuery*>& queries,
                                const DumpOptions& options,
                                const Clock& clock);

}  // namespace ceems::cacct
