#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "store/nodes.h"
#include "tsdb/client.h"

namespace ceems::ingest {

/// Where the counters of a cluster's nodes are.
struct NodeSource {
  std::string cluster_id;
  std::unique_ptr<tsdb::Client> client;
  /// The label whose value is the ID of the cluster. Empty: the TSDB has only this cluster.
  std::string cluster_label = {};
};

/// A part of one day, (start, end], in epoch ms.
struct NodeWindow {
  std::int64_t start_ms = 0, end_ms = 0;
  std::int64_t day_ms = 0;  ///< the beginning of the day

  bool operator==(const NodeWindow&) const = default;
};

/// The part of a day that comes next after `until_ms`: at most an hour, and up to `settled_ms` at
/// most. It is empty, with start_ms == end_ms, as long as it would be shorter than 5 min, unless it
/// completes the day.
NodeWindow next_node_window(std::int64_t until_ms, std::int64_t settled_ms, const TimeZone& zone);

/// Reads what each node used in the window: ceems_{node,system,unallocated}_energy_joules_total and
/// ceems_compute_unit_idle_energy_joules_total of the domain `node` as raw samples, and what the
/// nodes are. Three queries.
///
/// Each increase counts in the window that contains its later sample (updater/counter.h), so the
/// sum does not depend on how time is divided. Samples of up to 15 min before the window count as
/// the earlier one; of a longer pause nothing is counted, and it is not covered. A unit's counter
/// that began while its node was being read counts from 0. Idle energy is at most what the units of
/// the node used.
Result<store::NodeUpdate> read_node_energy(const NodeSource& source, const NodeWindow& window);

}  // namespace ceems::ingest
