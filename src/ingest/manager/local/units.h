#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time/time_zone.h"
#include "model/unit.h"
#include "tsdb/answer.h"

namespace ceems::ingest {

/// One life of a unit on one host, from the exporter's series.
struct UnitLife {
  std::string origin = {};  ///< host and cgrouphostname
  std::string uuid = {}, name = {}, username = {};
  std::int64_t start_ms = 0;
  std::int64_t last_seen_ms = 0;       ///< time of the last sample
  std::int64_t seen_before_ms = 0;     ///< last sample visible to the previous window; 0: none
  std::int64_t end_ms = 0;             ///< 0: not known
  std::int64_t end_first_seen_ms = 0;  ///< time of the first sample with the end
  double cpus = 0;
  double memory_bytes = 0;
  bool owner_known = true;
  bool allocation_known = true;
};

/// A series of equal values; stores only the necessary raw samples.
struct Run {
  double value = 0;
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
  std::int64_t last_by_mark_ms = 0;  ///< last sample at or before the mark; 0: none
};
/// Appends samples; those not later than the last one are skipped.
void append_runs(std::vector<Run>& runs,
                 const std::vector<tsdb::Sample>& samples,
                 std::int64_t mark_ms);

/// Returns the lives in the runs of start_time_seconds and end_time_seconds of one series. A new
/// start is a new life (a service was restarted under the same uuid). An end belongs to the latest
/// life that began before it. Values that are not valid times are skipped.
std::vector<UnitLife> lives_of(const std::vector<Run>& starts, const std::vector<Run>& ends);

/// Merges lives of the same uuid on several hosts that overlap in time into one unit: the first
/// start, the last end, CPUs and memory added. Metrics are looked up by uuid, so these lives could
/// not be told apart.
std::vector<UnitLife> merge_hosts(std::vector<UnitLife> lives);

struct LocalUnitContext {
  model::Window window;
  std::int64_t settle_ms = 0;      ///< samples up to this long after the window were read
  std::int64_t gone_after_ms = 0;  ///< a unit without samples for this long ended at its last one
  std::string project;
};

/// Returns the units of a window as they stood at its end. Time counts only up to the last sample
/// and continues from there in the next window. So a unit that vanished is not charged for the time
/// until this is noticed, and the times of all windows add up to end - start. Units that started
/// later are left out, and so are units that ended before the window, unless their end became known
/// only now.
std::vector<model::Unit> local_units(const std::vector<UnitLife>& lives,
                                     const LocalUnitContext& context,
                                     const TimeZone& zone);

}  // namespace ceems::ingest
