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
  std::int64_t seen_before_ms = 0;     ///< last sample the window before could see; 0: none
  std::int64_t end_ms = 0;             ///< 0: none known
  std::int64_t end_first_seen_ms = 0;  ///< time of the first sample with the end
  double cpus = 0;
  double memory_bytes = 0;
};

/// Values of one series that stayed the same for a while; keeps what matters of raw samples.
struct Run {
  double value = 0;
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
  std::int64_t last_by_mark_ms = 0;  ///< last sample not later than the mark; 0: none
};
/// Appends samples; those not later than the last one are skipped.
void append_runs(std::vector<Run>& runs,
                 const std::vector<tsdb::Sample>& samples,
                 std::int64_t mark_ms);

/// The lives in the runs of start_time_seconds and end_time_seconds of one series. A new
/// start is a new life (a service restarted under the same uuid); an end belongs to the latest life
/// that began before it. Values that are not times are skipped.
std::vector<UnitLife> lives_of(const std::vector<Run>& starts, const std::vector<Run>& ends);

/// Lives of the same uuid on several hosts that overlap in time are one unit: the first start, the
/// last end, CPUs and memory added. Metrics are found by uuid and could not be kept apart.
std::vector<UnitLife> merge_hosts(std::vector<UnitLife> lives);

struct LocalUnitContext {
  model::Window window;
  std::int64_t settle_ms = 0;      ///< samples up to this long after the window were read
  std::int64_t gone_after_ms = 0;  ///< without sample for this long: ended at the last one
  std::string project;
};

/// The units of a window as they stood at its end. Time is counted up to the last sample only and
/// goes on from there in the next window, so a unit that vanished is not charged for the time it
/// takes to notice, and the times of all windows add up to end - start. Left out: units that
/// started later, and units that ended before the window unless their end became known only now.
std::vector<model::Unit> local_units(const std::vector<UnitLife>& lives,
                                     const LocalUnitContext& context,
                                     const TimeZone& zone);

}  // namespace ceems::ingest
