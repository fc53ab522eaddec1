#pragma once

#include <algorithm>
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

namespace energy {
class Sampler;
}

/// The names under which the power of BMCs is exported (--collector.power-metric-names).
enum class PowerNames {
  kBoth,
  kOld,  ///< of CEEMS 0.10: ceems_ipmi_dcmi_current_watts
  kNew,  ///< of CEEMS 0.11 and later: ceems_ipmi_dcmi_power_current_watts
};

/// Settings that several collectors share. The options of a single collector are in its source
/// file, in its CollectorSpec (see collectors/rapl.cc).
struct CollectorContext {
  host::Paths paths;
  std::string hostname;           ///< value of the label `hostname`; may be empty
  bool hostname_emptied = false;  ///< --collector.empty-hostname-label was given
  PowerNames power_names = PowerNames::kBoth;
  const Clock* clock = nullptr;  ///< outlives the collectors
  /// When the start of the program stops waiting for what may hang (tools, BMC). Shared by all.
  std::chrono::steady_clock::time_point start_until = std::chrono::steady_clock::time_point::max();
  /// How long ended units are kept if no scrape fetches them.
  std::chrono::milliseconds keep_ended = std::chrono::minutes(10);

  /// How long to wait for one thing while the collectors are created: `limit`, or less when little
  /// time is left for the start, but always enough for what answers at once.
  [[nodiscard]] std::chrono::milliseconds start_patience(std::chrono::milliseconds limit) const {
    constexpr std::chrono::milliseconds kAlways{200};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        start_until - std::chrono::steady_clock::now());
    return std::min(limit, std::max(left, kAlways));
  }
};

/// What collectors provide for others, which share it with the collector that provides it.
struct Sources {
  std::vector<std::shared_ptr<UnitSource>> units = {};
  energy::Meters meters = {};            ///< of the node's energy or of one of its domains
  energy::DeviceMeterList devices = {};  ///< devices whose energy is split among their holders
  std::shared_ptr<energy::Sampler> sampler = {};  ///< that accounts for it; null if it is off
};

/// When a collector is created. This determines what it may use: the Sources of earlier stages,
/// never of its own. The help text lists collectors in this order, and by name within a stage.
enum class Stage {
  kNode,             ///< reads the node; may provide meters. Most collectors are in this stage.
  kJobs,             ///< provides the units of a batch system
  kVirtualMachines,  ///< provides virtual machines as units
  kPods,             ///< provides pods as units
  kCgroups,          ///< provides other cgroups as units, so it checks which managers are on
  kDevices,          ///< shows which units use devices; provides the devices
  kEnergy,           ///< splits the energy of all meters and devices among all units
  kMarks,            ///< divides the energy of units
};

/// Reads one kind of thing at each scrape. collect() is called by one thread at a time; scrapes
/// never overlap in one collector. A collector of a slow device reads it in its own thread, and
/// collect() only returns the last value.
class Collector {
 public:
  virtual ~Collector() = default;
  /// Adds samples. kNoData means that there is nothing to read (logged at debug level, success 0).
  /// Any other error is logged as an error, with success 0. Samples added before an error stay.
  virtual Result<> collect(metrics::Sink& sink) = 0;
  /// What it provides for collectors of later stages. Called once, right after creation.
  [[nodiscard]] virtual Sources sources() const { return {}; }
  /// Ages of the values that it returns now. Empty for a collector that reads at each scrape.
  [[nodiscard]] virtual std::vector<SourceAge> source_ages() const { return {}; }
  /// How many assignments of GPUs to units on the last page are based only on what the unit's user
  /// controls (its environment). Nothing for a collector that makes no assignments.
  [[nodiscard]] virtual std::optional<std::size_t> hints() const { return std::nullopt; }
  /// Capabilities that it raises after the start (os/privileges.h). Called once, right after
  /// creation.
  [[nodiscard]] virtual std::vector<os::Capability> capabilities() const { return {}; }
  /// Starts the collector's threads, if it has any. Called once, after privileges were dropped and
  /// before the first collect(), because a thread started in `create` would keep root's privileges.
  virtual void start() {}
  /// Waits until the threads have their first values, so that the first page has them, or until the
  /// deadline. Called once, when all collectors have been started. Collectors of kEnergy are
  /// started and waited for after all others, so that their first sample includes what the others
  /// read.
  virtual void wait_first(std::chrono::steady_clock::time_point /*deadline*/) {}
};

/// Describes a collector before it is created. Its name also names the flag --collector.NAME, the
/// source file, the metrics, the test and the row in the documentation.
struct CollectorSpec {
  std::string name;
  std::string help;
  Stage stage = Stage::kNode;
  bool enabled_by_default = false;
  /// Determines the default instead of `enabled_by_default` if it depends on the machine or on
  /// other collectors. `sources` come from earlier stages. Called once, before `create`, if none of
  /// --collector.NAME, its negation and --collector.disable-defaults was given. May be empty.
  std::function<bool(const CollectorContext& context, const Sources& sources)> enabled_when = {};
  /// Adds the flags --collector.NAME.*. May be empty. The variables they set live as long as the
  /// spec.
  std::function<void(config::FlagSet&)> add_flags = {};
  /// Copies values of flags that other collectors need into the context, before any collector is
  /// created. Called unless the collector is switched off on the command line. An error ends the
  /// program. May be empty.
  std::function<Result<>(CollectorContext&)> prepare = {};
  /// Creates the collector. `sources` come from earlier stages. An error ends the program.
  std::function<Result<std::unique_ptr<Collector>>(const CollectorContext& context,
                                                   const Sources& sources)>
      create = {};
};

}  // namespace ceems::exporter
