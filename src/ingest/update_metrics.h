#pragma once

#include <string_view>

#include "metrics/registry.h"

namespace ceems::ingest {

/// Metrics of the update loop; docs/api/metrics.md describes each. The registry must outlive them.
struct UpdateMetrics {
  explicit UpdateMetrics(metrics::Registry& registry);

  metrics::Counter& rounds;
  metrics::Counter& purge_failures;
  metrics::Counter& admin_failures;  ///< of the AdminSource
  metrics::Gauge& sums_open;         ///< spans whose sums over time are still to be computed
};

/// The metrics of one cluster.
struct ClusterMetrics {
  ClusterMetrics(metrics::Registry& registry, std::string_view cluster_id);

  metrics::Gauge& watermark;        ///< end of the last window written, in seconds since the epoch;
                                    ///< 0, and not exported, before the first
  metrics::Counter& windows;        ///< written
  metrics::Counter& failures;       ///< of fetching, updating or writing
  metrics::Gauge& failing;          ///< 1: the last attempt failed or left something out
  metrics::Gauge& units;            ///< in the last window
  metrics::Counter& units_skipped;  ///< rejected by the store, in all windows
  metrics::Gauge& gaps;             ///< open gaps
  metrics::Counter& gaps_filled;
  metrics::Gauge& fetch_seconds;  ///< how long the last window took to fetch
};

}  // namespace ceems::ingest
