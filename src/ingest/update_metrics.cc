#include "ingest/update_metrics.h"

namespace ceems::ingest {
namespace {

using metrics::Desc;
using metrics::Type;

Desc of_cluster(const char* name, const char* help, Type type) {
  return {name, help, type, {"cluster_id"}};
}

const Desc kWatermark = of_cluster(
    "ceems_api_server_update_watermark_timestamp_seconds",
    "End of the last window of the cluster that was written, in seconds since the epoch.",
    Type::kGauge);
const Desc kWindows =
    of_cluster("ceems_api_server_update_windows_total", "Windows written.", Type::kCounter);
const Desc kFailures = of_cluster("ceems_api_server_update_failures_total",
                                  "Failed attempts to fetch, update or write a window.",
                                  Type::kCounter);
const Desc kFailing = of_cluster("ceems_api_server_update_failing",
                                 "1 while the last attempt failed or left something out.",
                                 Type::kGauge);
const Desc kUnits = of_cluster(
    "ceems_api_server_update_units", "Units in the last window that was written.", Type::kGauge);
const Desc kSkipped = of_cluster("ceems_api_server_update_units_skipped_total",
                                 "Units that the data base refused.",
                                 Type::kCounter);
const Desc kGaps = of_cluster(
    "ceems_api_server_update_gaps", "Windows whose metrics are not complete yet.", Type::kGauge);
const Desc kGapsFilled = of_cluster("ceems_api_server_update_gaps_filled_total",
                                    "Such windows that were completed later.",
                                    Type::kCounter);
const Desc kFetchSeconds = of_cluster("ceems_api_server_update_fetch_duration_seconds",
                                      "How long the last window took to fetch.",
                                      Type::kGauge);
const Desc kRounds{
    "ceems_api_server_update_rounds_total", "Rounds of updates begun.", Type::kCounter, {}};
const Desc kPurgeFailures{"ceems_api_server_purge_failures_total",
                          "Failed attempts to purge old units.",
                          Type::kCounter,
                          {}};
const Desc kAdminFailures{"ceems_api_server_admin_sync_failures_total",
                          "Failed attempts to fetch the administrators.",
                          Type::kCounter,
                          {}};

}  // namespace

void add_update_figures(metrics::Sink& sink, const UpdateFigures& figures) {
  constexpr double kMsPerSecond = 1000;
  for (const UpdateFigures::Cluster& cluster : figures.clusters) {
    const auto add = [&](const Desc& desc, double value) { sink.add(desc, value, {cluster.id}); };
    if (cluster.watermark_ms > 0) {
      add(kWatermark, static_cast<double>(cluster.watermark_ms) / kMsPerSecond);
    }
    add(kWindows, static_cast<double>(cluster.windows));
    add(kFailures, static_cast<double>(cluster.failures));
    add(kFailing, cluster.failing ? 1 : 0);
    add(kUnits, static_cast<double>(cluster.units));
    add(kSkipped, static_cast<double>(cluster.units_skipped));
    add(kGaps, static_cast<double>(cluster.gaps));
    add(kGapsFilled, static_cast<double>(cluster.gaps_filled));
    add(kFetchSeconds, cluster.fetch_seconds);
  }
  sink.add(kRounds, static_cast<double>(figures.rounds));
  sink.add(kPurgeFailures, static_cast<double>(figures.purge_failures));
  sink.add(kAdminFailures, static_cast<double>(figures.admin_failures));
}

}  // namespace ceems::ingest
