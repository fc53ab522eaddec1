#include "ingest/update_metrics.h"

namespace ceems::ingest {
namespace {

using metrics::Counter;
using metrics::Gauge;
using metrics::Registry;

Counter& counter(Registry& registry, std::string_view cluster, const char* name, const char* help) {
  return registry.counters(name, help, {"cluster_id"}).with({cluster});
}

Gauge& gauge(Registry& registry, std::string_view cluster, const char* name, const char* help) {
  return registry.gauges(name, help, {"cluster_id"}).with({cluster});
}

}  // namespace

UpdateMetrics::UpdateMetrics(Registry& registry)
    : rounds(registry.counter("ceems_api_server_update_rounds_total", "Update rounds started.")),
      purge_failures(registry.counter("ceems_api_server_purge_failures_total",
                                      "Failed attempts to purge old units.")),
      admin_failures(registry.counter("ceems_api_server_admin_sync_failures_total",
                                      "Failed attempts to fetch the administrators.")),
      sums_open(registry.gauge("ceems_api_server_sums_open",
                               "Spans of time whose sums are still to be computed. Until then, "
                               "queries over long periods take longer.")) {}

ClusterMetrics::ClusterMetrics(Registry& registry, std::string_view id)
    : watermark(
          registry
              .gauges(
                  "ceems_api_server_update_watermark_timestamp_seconds",
                  "End of the last window of the cluster that was written, in seconds since the "
                  "epoch.",
                  {"cluster_id"})
              .hide_zeros()
              .with({id})),
      windows(counter(registry, id, "ceems_api_server_update_windows_total", "Windows written.")),
      failures(counter(registry,
                       id,
                       "ceems_api_server_update_failures_total",
                       "Failed attempts to fetch, update or write a window.")),
      failing(gauge(registry,
                    id,
                    "ceems_api_server_update_failing",
                    "1 while the last attempt failed or left something out.")),
      units(gauge(registry,
                  id,
                  "ceems_api_server_update_units",
                  "Units in the last window that was written.")),
      units_skipped(counter(registry,
                            id,
                            "ceems_api_server_update_units_skipped_total",
                            "Units that the database refused.")),
      gaps(gauge(registry,
                 id,
                 "ceems_api_server_update_gaps",
                 "Gaps: windows whose metrics are incomplete.")),
      gaps_filled(counter(registry,
                          id,
                          "ceems_api_server_update_gaps_filled_total",
                          "Gaps that were filled later.")),
      fetch_seconds(gauge(registry,
                          id,
                          "ceems_api_server_update_fetch_duration_seconds",
                          "Time that fetching the last window took, in seconds.")) {}

}  // namespace ceems::ingest
