#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exporter/collector.h"
#include "exporter/collectors/unit_metrics.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

/// The parts of a unit collector.
struct UnitCollectorParts {
  std::string name;  ///< value of the label `collector`
  std::shared_ptr<UnitSource> source;
  UnitMetrics metrics;
  std::vector<std::unique_ptr<SubCollector>> subs = {};
  /// Adds series that only this manager has. May be empty.
  std::function<void(const UnitSnapshot&, metrics::Sink&)> extra = {};
  /// Capabilities that the source raises after the start.
  std::vector<os::Capability> capabilities = {};
};

/// The collector of one manager's units. All its parts use the same snapshot. An error of the
/// source is the error of the collector. An error of a sub-collector is logged and affects nothing
/// else.
std::unique_ptr<Collector> make_unit_collector(UnitCollectorParts parts, const Clock& clock);

}  // namespace ceems::exporter
