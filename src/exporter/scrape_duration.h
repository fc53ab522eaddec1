#pragma once

#include <chrono>
#include <string_view>

#include "metrics/sink.h"

namespace ceems::exporter {

/// Adds ceems_scrape_collector_duration_seconds; `subcollector` is empty for the collector itself:
/// the label is then left out.
void add_scrape_duration(metrics::Sink& sink,
                         std::string_view collector,
                         std::string_view subcollector,
                         std::chrono::nanoseconds duration);

}  // namespace ceems::exporter
