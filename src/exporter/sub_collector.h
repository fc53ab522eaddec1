#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/flags.h"
#include "exporter/collector.h"
#include "exporter/unit/unit.h"
#include "exporter/unit/unit_source.h"
#include "host/cgroup/mount.h"
#include "metrics/sink.h"
#include "os/privileges.h"

namespace ceems::exporter {

/// Adds further metrics of one manager's units to a scrape: GPU map, perf counters, RDMA resources.
/// Belongs to a UnitCollector and uses its snapshot. Like a Collector, it is called by one thread
/// at a time.
class SubCollector {
 public:
  virtual ~SubCollector() = default;
  /// Value of the label `subcollector`. If empty, its time counts as the collector's.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// An error is logged when it starts and when it ends. It does not change the success of the unit
  /// collector, and samples added before it stay. kNoData is logged at debug level.
  virtual Result<> collect(const UnitSnapshot& snapshot, metrics::Sink& sink) = 0;
  /// Capabilities that it raises after the start.
  [[nodiscard]] virtual std::vector<os::Capability> capabilities() const { return {}; }
  /// Ages of the values that it returns now; see Collector::source_ages().
  [[nodiscard]] virtual std::vector<SourceAge> source_ages() const { return {}; }
  /// See Collector::hints().
  [[nodiscard]] virtual std::optional<std::size_t> hints() const { return std::nullopt; }
  /// Starts its threads, if it has any; see Collector::start().
  virtual void start() {}
  /// See Collector::wait_first().
  virtual void wait_first(std::chrono::steady_clock::time_point /*deadline*/) {}
};

/// A sub-collector that the unit collectors of all managers can have.
struct SubCollectorSpec {
  std::string name;
  /// Adds its flags. The variables they set live as long as the spec.
  std::function<void(config::FlagSet&)> add_flags = {};
  /// Null if its flags leave it off. An error ends the program. `source` provides the units, which
  /// are cgroups of `mount`. Call its want_processes() if Unit::pids or Unit::children are used.
  std::function<Result<std::unique_ptr<SubCollector>>(
      const CollectorContext& context, const host::CgroupMount& mount, UnitSource& source)>
      create = {};
};

/// The sub-collectors of every unit collector, in this order.
class SubCollectorSet {
 public:
  SubCollectorSet() = default;
  explicit SubCollectorSet(std::vector<SubCollectorSpec> specs) : specs_(std::move(specs)) {}

  void add_to(config::FlagSet& flags) const;
  /// Creates those that are on. Errors name the sub-collector.
  Result<std::vector<std::unique_ptr<SubCollector>>> create(const CollectorContext& context,
                                                            const host::CgroupMount& mount,
                                                            UnitSource& source) const;

 private:
  std::vector<SubCollectorSpec> specs_;
};

}  // namespace ceems::exporter
