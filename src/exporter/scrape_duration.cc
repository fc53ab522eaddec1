#include "exporter/scrape_duration.h"

#include <string>
#include <utility>
#include <vector>

namespace ceems::exporter {
namespace {

metrics::Desc desc(std::vector<std::string> labels) {
  return {"ceems_scrape_collector_duration_seconds",
          "Wall-clock time that the collector or a part of it took in this scrape, in seconds.",
          metrics::Type::kGauge, std::move(labels)};
}
const metrics::Desc kWhole = desc({"collector"});
const metrics::Desc kPart = desc({"collector", "subcollector"});

}  // namespace

void add_scrape_duration(metrics::Sink& sink,
                         std::string_view collector,
                         std::string_view subcollector,
                         std::chrono::nanoseconds duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  if (subcollector.empty()) {
    sink.add(kWhole, seconds, {collector});
  } else {
    sink.add(kPart, seconds, {collector, subcollector});
  }
}

}  // namespace ceems::exporter
