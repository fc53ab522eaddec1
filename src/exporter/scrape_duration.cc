#include "exporter/scrape_duration.h"

namespace ceems::exporter {
namespace {

const metrics::Desc kDuration{
    "ceems_scrape_collector_duration_seconds",
    "Wall-clock time that the collector or a part of it took in this scrape, in seconds.",
    metrics::Type::kGauge,
    {"collector", "subcollector"}};

}  // namespace

void add_scrape_duration(metrics::Sink& sink,
                         std::string_view collector,
                         std::string_view subcollector,
                         std::chrono::nanoseconds duration) {
  sink.add(kDuration, std::chrono::duration<double>(duration).count(), {collector, subcollector});
}

}  // namespace ceems::exporter
