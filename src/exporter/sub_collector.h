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

/// Adds what else is known of the units of one manager to a scrape: GPU map, perf counters, RDMA
/// resources. Belongs to a UnitCollector and works on its snapshot; called like a Collector: from
/// one thread at a time.
class SubCollector {
 public:
  virtual ~SubCollector() = default;
  /// Value of the label `subcollector`; empty: its time is part of the collector's own.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// An error is logged when it starts and when it ends; it leaves the success of the unit
  /// collector alone. What was added before stays. kNoData is logged at
  /// debug.
  virtual Result<> collect(const UnitSnapshot& snapshot, metrics::Sink& sink) = 0;
  /// Capabilities it raises after the start.
  [[nodiscard]] virtual std::vector<os::Capability> capabilities() const { return {}; }
  /// Ages of the values it serves now; see Collector::source_ages().
  [[nodiscard]] virtual std::vector<SourceAge> source_ages() const { return {}; }
  /// See Collector::hints().
  [[nodiscard]] virtual std::optional<std::size_t> hints() const { return std::nullopt; }
  /// Starts its own threads, if any; see Collector::start().
  virtual void start() {}
  /// See Collector::wait_first().
  virtual void wait_first(std::chrono::steady_clock::time_point /*deadline*/) {}
};

/// A sub-collector that unit collectors of every manager can have.
struct SubCollectorSpec {
  std::string name;
  /// Adds its flags. The targets live as long as the spec.
  std::function<void(config::FlagSet&)> add_flags = {};
  /// Null where its flags leave it off. An error ends the start of the program. `source` gives the
  /// units, which are cgroups of `mount`; call want_processes() on it where Unit::pids or
  /// Unit::children are used.
  std::function<Result<std::unique_ptr<SubCollector>>(
      const CollectorContext& context, const host::CgroupMount& mount, UnitSource& source)>
      create = {};
};

/// The sub-collectors every unit collector has, in list order.
class SubCollectorSet {
 public:
  SubCollectorSet() = default;
  explicit SubCollectorSet(std::vector<SubCollectorSpec> specs) : specs_(std::move(specs)) {}

  void add_to(config::FlagSet& flags) const;
  /// Those that are on. Errors come with the sub-collector's name in front.
  Result<std::vector<std::unique_ptr<SubCollector>>> create(const CollectorContext& context,
                                                            const host::CgroupMount& mount,
                                                            UnitSource& source) const;

 private:
  std::vector<SubCollectorSpec> specs_;
};

}  // namespace ceems::exporter
