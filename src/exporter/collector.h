#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/flags.h"
#include "exporter/energy/meter/device_meters.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/source/source_age.h"
#include "exporter/unit/unit_source.h"
#include "host/paths.h"
#include "metrics/sink.h"
#include "os/privileges.h"

namespace ceems::exporter {

/// Values of all flags of all collectors; each collector declares its own options struct and keeps
/// it in its CollectorSpec (see collectors/rapl.cc), so this holds only what several collectors
/// share.
struct CollectorContext {
  host::Paths paths;
  std::string hostname;           ///< value of the label `hostname`; may be empty
  bool hostname_emptied = false;  ///< --collector.empty-hostname-label was given
  const Clock* clock = nullptr;   ///< outlives the collectors
  /// Until when the start of the program may wait for what may hang (tools, BMC); all share it.
  std::chrono::steady_clock::time_point start_until = std::chrono::steady_clock::time_point::max();
  /// How long units that ended are kept where nobody scrapes them.
  std::chrono::milliseconds keep_ended = std::chrono::minutes(10);
  /// Sources of all enabled unit collectors, in list order; filled before other collectors are
  /// created.
  std::vector<std::shared_ptr<UnitSource>> unit_sources;
  /// Meters of the enabled collectors (BMC, GPUs), for `energy` to take; never null.
  std::shared_ptr<energy::Meters> meters = std::make_shared<energy::Meters>();
  /// Devices that collectors read, for `energy` to split by holder; never null.
  std::shared_ptr<energy::DeviceMeterList> devices = std::make_shared<energy::DeviceMeterList>();
};

/// How long one thing may be waited for while the collectors are created: `most`, less where little
/// time is left, but always enough for what answers at once.
std::chrono::milliseconds start_patience(const CollectorContext& context,
                                         std::chrono::milliseconds most);

/// Reads one kind of thing at each scrape. The scrape calls collect() of one collector from one
/// thread at a time; several scrapes never overlap in one collector. Slow devices are read by a
/// worker of the collector's own, collect() only serves the last value.
class Collector {
 public:
  virtual ~Collector() = default;
  /// Adds samples. kNoData: nothing there (logged at debug, success 0). Any other error: logged at
  /// error, success 0; what was added before stays.
  virtual Result<> collect(metrics::Sink& sink) = 0;
  /// The unit source this collector brings, or null. Asked once, right after creation.
  virtual std::shared_ptr<UnitSource> unit_source() { return nullptr; }
  /// Meters of energy it brings for the sampler; they share what they read with the collector.
  /// Asked once, right after creation.
  virtual energy::Meters energy_meters() { return {}; }
  /// Ages of the values it serves now; empty for one that reads at each scrape.
  [[nodiscard]] virtual std::vector<SourceAge> source_ages() const { return {}; }
  /// How many assignments of GPUs to units on the last page rest on nothing but what the unit's
  /// user controls (its environment); nothing where it makes none.
  [[nodiscard]] virtual std::optional<std::size_t> hints() const { return std::nullopt; }
  /// Capabilities it raises after the start (os/privileges.h). Asked once, right after creation.
  [[nodiscard]] virtual std::vector<os::Capability> capabilities() const { return {}; }
  /// Starts the collector's own threads, if any. Called once, after privileges were dropped and
  /// before the first collect(): a thread started in `create` would keep root's privileges.
  virtual void start() {}
  /// Waits until what was started has its first values, so that the first page has them, or until
  /// the deadline. Called once, after start() of all collectors.
  virtual void wait_first(std::chrono::steady_clock::time_point /*deadline*/) {}
};

/// One line in collectors/all.cc. The name is the word of the feature: flag --collector.NAME, file,
/// metrics, test and docs row.
struct CollectorSpec {
  std::string name;
  std::string help;
  bool enabled_by_default = false;
  /// Decides the default instead of `enabled_by_default` where it depends on the machine or on
  /// other collectors. Asked once at the start, in list order, when neither --collector.NAME nor
  /// its negation nor --collector.disable-defaults was given; unit_sources of the collectors before
  /// this one are then in the context. May be empty.
  std::function<bool(const CollectorContext&)> enabled_when = {};
  /// Adds --collector.NAME.* flags. May be empty. The targets live as long as the spec.
  std::function<void(config::FlagSet&)> add_flags = {};
  /// Puts values of flags that other collectors need into the context, before any is created; asked
  /// of those that are not switched off on the command line. An error ends the start of the
  /// program. May be empty.
  std::function<Result<>(CollectorContext&)> prepare = {};
  /// An error here ends the start of the program.
  std::function<Result<std::unique_ptr<Collector>>(const CollectorContext&)> create = {};
};

}  // namespace ceems::exporter
