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

/// Settings that several collectors share. Options of one collector are in its own source, where
/// its CollectorSpec keeps them (see collectors/rapl.cc).
struct CollectorContext {
  host::Paths paths;
  std::string hostname;           ///< value of the label `hostname`; may be empty
  bool hostname_emptied = false;  ///< --collector.empty-hostname-label was given
  const Clock* clock = nullptr;   ///< outlives the collectors
  /// Until when the start of the program may wait for what may hang (tools, BMC); all share it.
  std::chrono::steady_clock::time_point start_until = std::chrono::steady_clock::time_point::max();
  /// How long units that ended are kept where nobody scrapes them.
  std::chrono::milliseconds keep_ended = std::chrono::minutes(10);

  /// How long one thing may be waited for while the collectors are created: `most`, less where
  /// little of the start's time is left, but always enough for what answers at once.
  [[nodiscard]] std::chrono::milliseconds start_patience(std::chrono::milliseconds most) const {
    constexpr std::chrono::milliseconds kAlways{200};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        start_until - std::chrono::steady_clock::now());
    return std::min(most, std::max(left, kAlways));
  }
};

/// What collectors bring for others to use. Everything in it is shared with the collector that
/// brings it.
struct Sources {
  std::vector<std::shared_ptr<UnitSource>> units = {};
  energy::Meters meters = {};            ///< of the energy of the node or a part of it
  energy::DeviceMeterList devices = {};  ///< whose energy is split by who holds them
};

/// When a collector is created, and so what it may use: the Sources of the stages before its own,
/// never those of its own. The help text lists collectors in this order, those of one stage by
/// name.
enum class Stage {
  kNode,             ///< reads the node; may bring meters. Most collectors are of this stage.
  kJobs,             ///< brings the units of a batch system
  kVirtualMachines,  ///< brings virtual machines as units
  kPods,             ///< brings pods as units
  kCgroups,  ///< brings units that no resource manager made, so it asks which managers are on
  kDevices,  ///< shows which units use devices; brings the devices
  kEnergy,   ///< splits the energy of all meters and devices among all units
};

/// Reads one kind of thing at each scrape. The scrape calls collect() of one collector from one
/// thread at a time; several scrapes never overlap in one collector. Slow devices are read by a
/// worker of the collector's own, collect() only serves the last value.
class Collector {
 public:
  virtual ~Collector() = default;
  /// Adds samples. kNoData: nothing there (logged at debug, success 0). Any other error: logged at
  /// error, success 0; what was added before stays.
  virtual Result<> collect(metrics::Sink& sink) = 0;
  /// What it brings for collectors of later stages. Asked once, right after creation.
  [[nodiscard]] virtual Sources sources() const { return {}; }
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
  /// the deadline. Called once, when all collectors were started; those of kEnergy are started and
  /// waited for after all others, so that their first sample has what the others read.
  virtual void wait_first(std::chrono::steady_clock::time_point /*deadline*/) {}
};

/// What is known of a collector before it is created. The name is the word of the feature: flag
/// --collector.NAME, file, metrics, test and docs row.
struct CollectorSpec {
  std::string name;
  std::string help;
  Stage stage = Stage::kNode;
  bool enabled_by_default = false;
  /// Decides the default instead of `enabled_by_default` where it depends on the machine or on
  /// other collectors; `sources` are those of earlier stages. Asked once, before `create`, when
  /// neither --collector.NAME nor its negation nor --collector.disable-defaults was given. May be
  /// empty.
  std::function<bool(const CollectorContext& context, const Sources& sources)> enabled_when = {};
  /// Adds --collector.NAME.* flags. May be empty. The targets live as long as the spec.
  std::function<void(config::FlagSet&)> add_flags = {};
  /// Puts values of flags that other collectors need into the context, before any is created; asked
  /// of those that are not switched off on the command line. An error ends the start of the
  /// program. May be empty.
  std::function<Result<>(CollectorContext&)> prepare = {};
  /// Makes the collector; `sources` are those of earlier stages. An error ends the start of the
  /// program.
  std::function<Result<std::unique_ptr<Collector>>(const CollectorContext& context,
                                                   const Sources& sources)>
      create = {};
};

}  // namespace ceems::exporter
