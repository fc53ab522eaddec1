#include <linux/capability.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "exporter/collector.h"
#include "exporter/collectors/node_info.h"
#include "exporter/collectors/unit_metrics.h"
#include "exporter/energy/meter/host_meters.h"
#include "exporter/energy/meter/power_model.h"
#include "exporter/energy/options.h"
#include "exporter/energy/sampler.h"
#include "exporter/energy/state/learned.h"
#include "exporter/energy/state/state_file.h"
#include "exporter/source/privileged_open.h"
#include "host/cgroup/mount.h"
#include "host/cpu_throttle.h"
#include "host/cpu_topology.h"

namespace ceems::exporter {
namespace {

using energy::Account;
using energy::Domain;
using metrics::Desc;
using metrics::Type;

/// Exports the counters of a sampler (docs/energy.md) and starts it in start(). Each collect()
/// makes it tick if its last sample is old, so the page is up to date even if it was never started.
class EnergyCollector final : public Collector {
 public:
  /// `meters` belong to the sampler, which the collector of marks shares.
  EnergyCollector(std::shared_ptr<energy::Sampler> sampler,
                  energy::Meters meters,
                  const Clock& clock,
                  const std::string& hostname,
                  const host::Paths& paths)
      : sampler_(std::move(sampler)),
        meters_(std::move(meters)),
        clock_(clock),
        hostname_(hostname),
        use_metrics_(hostname),
        node_info_(hostname, paths),
        throttle_(paths, host::read_cpu_topology(paths)) {
    started_ = clock_.steady_now();
  }

  [[nodiscard]] Sources sources() const override { return {.sampler = sampler_}; }

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return {CAP_DAC_READ_SEARCH};  // to reopen energy counters that reappear
  }

  void start() override { sampler_->start(); }

  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    sampler_->wait_first(deadline);
  }

  Result<> collect(metrics::Sink& sink) override {
    sampler_->tick(energy::Sampler::Caller::kScrape);
    sampler_->with_account([&](Account& account, Clock::SteadyTime) {
      add_units(account, sink);
      add_node(account, sink);
      add_sources(account, sink);
      account.mark_scraped();
    });
    node_info_.add(sampler_->device_models(), sink);
    add_excluded(sink);
    add_throttling(sink);
    return {};
  }

 private:
  void add_throttling(metrics::Sink& sink) {
    for (const host::CpuThrottle::Package& package : throttle_.read()) {
      const std::string number = std::to_string(package.number);
      sink.add(throttled_, static_cast<double>(package.package_events), {hostname_, number});
      sink.add(cores_throttled_, static_cast<double>(package.core_events), {hostname_, number});
    }
  }

  void add_excluded(metrics::Sink& sink) {
    for (std::size_t i = 0; i < meters_.size(); ++i) {
      const std::string& source = meters_[i]->source().name;
      const energy::SourceGate& gate = sampler_->gate().source(i);
      for (std::size_t reason = 0; reason < energy::kDoubtCount; ++reason) {
        const auto doubt = static_cast<energy::Doubt>(reason);
        if (const auto readings = gate.excluded(doubt); readings > 0) {
          sink.add(excluded_, static_cast<double>(readings),
                   {hostname_, source, energy::to_string(doubt)});
        }
      }
      if (const auto rejected = meters_[i]->rejected()) {
        sink.add(rejected_joules_, rejected->joules, {hostname_, source});
        sink.add(rejected_steps_, static_cast<double>(rejected->steps), {hostname_, source});
      }
    }
  }

  void add_units(const Account& account, metrics::Sink& sink) {
    for (const auto& unit : account.units()) {
      for (const Domain domain : energy::kDomains) {
        if (account.known(domain)) {
          sink.add(unit_joules_, unit->joules(domain),
                   {unit->manager, hostname_, unit->cgrouphostname, unit->uuid,
                    energy::to_string(domain)});
        }
      }
      use_metrics_.add(*unit, account, sink);
    }
  }

  void add_node(const Account& account, metrics::Sink& sink) {
    for (const Domain domain : energy::kDomains) {
      if (!account.known(domain)) {
        continue;
      }
      const std::string_view name = energy::to_string(domain);
      sink.add(system_joules_, account.system_joules(domain), {hostname_, name});
      sink.add(unallocated_joules_, account.unallocated_joules(domain), {hostname_, name});
      sink.add(ended_joules_, account.ended_joules(domain), {hostname_, name});
      if (const auto watts = account.idle_watts(domain)) {
        sink.add(idle_watts_, *watts, {hostname_, name});
        sink.add(idle_info_, 1, {hostname_, name, energy::to_string(account.idle_basis(domain))});
      }
    }
  }

  void add_sources(const Account& account, metrics::Sink& sink) {
    const std::string_view other = energy::to_string(Domain::kOther);
    const auto sources = account.sources();
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const energy::SourceAccount& source = sources[i];
      const energy::SourceInfo& info = source.info;
      const std::string_view domain = energy::to_string(info.domain);
      const bool counted = source.joules.value() > 0;
      // Only one source of the node counts at a time. One that never counted is not shown, except
      // for the one that counts now, so that the first page already has the energy of the node.
      const bool shown = counted || account.node_source() == i;
      // A meter that never had a value measures nothing.
      const bool seen = source.fresh.has_value() && info.domain != Domain::kNode;
      if (seen || shown) {
        sink.add(node_joules_, source.joules.value(), {hostname_, domain, info.name});
        sink.add(info_, 1, {hostname_, domain, info.name, energy::to_string(info.method)});
      }
      if (info.domain == Domain::kNode && counted && account.known(Domain::kOther) &&
          info.name != "sum") {
        const auto method = info.method == energy::Method::kModelled ? energy::Method::kModelled
                                                                     : energy::Method::kDerived;
        sink.add(node_joules_, source.other_joules.value(), {hostname_, other, info.name});
        sink.add(info_, 1, {hostname_, other, info.name, energy::to_string(method)});
      }
      if (info.name != "sum" && (info.method != energy::Method::kModelled || shown)) {
        const auto age = clock_.steady_now() - source.fresh.value_or(started_);
        sink.add(age_, std::max(0.0, std::chrono::duration<double>(age).count()),
                 {hostname_, info.name});
      }
    }
    for (const energy::SourceAccount& source : account.device_sources()) {
      const energy::SourceInfo& info = source.info;
      const std::string_view domain = energy::to_string(info.domain);
      const auto age = clock_.steady_now() - source.fresh.value_or(started_);
      sink.add(node_joules_, source.joules.value(), {hostname_, domain, info.name});
      sink.add(info_, 1, {hostname_, domain, info.name, energy::to_string(info.method)});
      sink.add(age_, std::max(0.0, std::chrono::duration<double>(age).count()),
               {hostname_, info.name});
    }
  }

  std::shared_ptr<energy::Sampler> sampler_;
  energy::Meters meters_;
  const Clock& clock_;
  std::string hostname_;
  UnitUseMetrics use_metrics_;
  NodeInfo node_info_;
  host::CpuThrottle throttle_;
  Clock::SteadyTime started_{};

  const Desc unit_joules_{"ceems_compute_unit_energy_joules_total",
                          "Energy of the unit by domain. The domain node is the sum of the others.",
                          Type::kCounter,
                          {"manager", "hostname", "cgrouphostname", "uuid", "domain"}};
  const Desc node_joules_{"ceems_node_energy_joules_total",
                          "Energy of the node by domain and source.",
                          Type::kCounter,
                          {"hostname", "domain", "source"}};
  const Desc system_joules_{"ceems_system_energy_joules_total",
                            "Energy used by the system, that is, by everything that is not a unit.",
                            Type::kCounter,
                            {"hostname", "domain"}};
  const Desc unallocated_joules_{"ceems_unallocated_energy_joules_total",
                                 "Idle energy of what no unit has reserved.",
                                 Type::kCounter,
                                 {"hostname", "domain"}};
  const Desc ended_joules_{"ceems_ended_units_energy_joules_total",
                           "Energy of units that ended and are no longer shown.",
                           Type::kCounter,
                           {"hostname", "domain"}};
  const Desc idle_watts_{"ceems_energy_idle_watts",
                         "Idle power used to split energy, learned or configured.",
                         Type::kGauge,
                         {"hostname", "domain"}};
  const Desc idle_info_{"ceems_energy_idle_info",
                        "Where the idle power comes from: learned, assumed, configured, modelled.",
                        Type::kGauge,
                        {"hostname", "domain", "basis"}};
  const Desc age_{"ceems_energy_source_age_seconds",
                  "Age of the newest value of an energy source.",
                  Type::kGauge,
                  {"hostname", "source"}};
  const Desc rejected_joules_{"ceems_energy_rejected_joules_total",
                              "Energy that a counter showed but the hardware cannot have drawn.",
                              Type::kCounter,
                              {"hostname", "source"}};
  const Desc rejected_steps_{"ceems_energy_rejected_steps_total",
                             "Steps of a counter that were too large to be energy.",
                             Type::kCounter,
                             {"hostname", "source"}};
  const Desc excluded_{"ceems_energy_readings_excluded_total",
                       "Readings of a source that were not believed, by reason.",
                       Type::kCounter,
                       {"hostname", "source", "reason"}};
  const Desc throttled_{"ceems_cpu_throttle_events_total",
                        "How often heat made a processor slow down, since the node booted.",
                        Type::kCounter,
                        {"hostname", "package"}};
  const Desc cores_throttled_{"ceems_cpu_core_throttle_events_total",
                              "How often heat made a core slow down, since the node booted; all "
                              "cores of the processor together.",
                              Type::kCounter,
                              {"hostname", "package"}};
  const Desc info_{"ceems_energy_source_info",
                   "Sources of energy and how their values are obtained.",
                   Type::kGauge,
                   {"hostname", "domain", "source", "method"}};
};

/// Values of the flags.
struct EnergyFlags {
  std::string interval = "1s";
  std::string idle_watts;
  std::string model_watts;
  std::string keep_ended = "10m";
  std::string second_thread = "0.25";
  std::string state_file = energy::default_state_file(std::getenv("STATE_DIRECTORY"));
};

Result<std::unique_ptr<Collector>> create_energy(const EnergyFlags& flags,
                                                 const CollectorContext& context,
                                                 const Sources& sources) {
  using std::chrono::milliseconds;
  CEEMS_TRY(interval, energy::parse_duration("--collector.energy.interval", flags.interval,
                                             milliseconds(100), std::chrono::minutes(5)));
  CEEMS_TRY_IN("--collector.energy.idle-watts", idle, energy::parse_idle_watts(flags.idle_watts));
  CEEMS_TRY_IN("--collector.energy.second-thread", second_thread,
               energy::parse_second_thread(flags.second_thread));
  CEEMS_TRY_IN("--collector.energy.model-watts", model,
               energy::parse_model_watts(flags.model_watts));
  const energy::SocketParts parts{.rails = std::make_shared<energy::SocketRails>(),
                                  .apu = std::make_shared<energy::ApuPower>()};
  auto meters = energy::find_meters(context.paths, *context.clock, open_privileged, parts);
  for (const auto& devices : sources.devices) {
    devices->set_host(parts);
  }
  if (const std::optional<energy::ModelWatts>& readings = model; readings) {
    energy::calibrate(meters, *readings);
  }
  const energy::ModelMeter* model_meter = energy::find_model(meters);
  const energy::AssumedIdle assumed =
      model_meter == nullptr ? energy::AssumedIdle{} : energy::assumed_idle(model_meter->model());
  meters.insert(meters.end(), sources.meters.begin(), sources.meters.end());
  std::unique_ptr<energy::StateFile> state;
  if (!flags.state_file.empty()) {
    state = std::make_unique<energy::StateFile>(
        flags.state_file, energy::this_machine(context.paths), *context.clock);
  }
  auto sampler = std::make_shared<energy::Sampler>(
      energy::SamplerOptions{
          .interval = interval,
          .account = {.keep_ended = context.keep_ended, .idle_watts = idle, .assumed = assumed},
          .second_thread = second_thread},
      *context.clock, context.paths, sources.units, meters, sources.devices, std::move(state));
  return std::make_unique<EnergyCollector>(std::move(sampler), std::move(meters), *context.clock,
                                           context.hostname, context.paths);
}

/// Unit collectors keep ended units for as long as their energy is kept.
Result<> prepare(const EnergyFlags& flags, CollectorContext& context) {
  CEEMS_TRY(keep, energy::parse_duration("--collector.energy.keep-ended", flags.keep_ended,
                                         std::chrono::milliseconds(0), std::chrono::hours(24)));
  context.keep_ended = keep;
  return {};
}

}  // namespace

/// --collector.energy: energy of units, system and node that adds up, from the meters of the host
/// and of other collectors.
CollectorSpec energy_collector() {
  const auto flags = std::make_shared<EnergyFlags>();
  return {
      .name = "energy",
      .help =
          "Enable the energy collector (energy of units and node; on by default if a unit "
          "collector is on)",
      .stage = Stage::kEnergy,
      .enabled_by_default = true,
      .enabled_when =
          [](const CollectorContext& context, const Sources& sources) {
            // A copied tree of plain files has no running units, and its CPU times do not
            // change.
            return !sources.units.empty() && host::detect_cgroup(context.paths.cgroup).live;
          },
      .add_flags =
          [flags](config::FlagSet& set) {
            set.add("collector.energy.interval", flags->interval,
                    {.help = "Time between two samples of energy meters and units"});
            set.add("collector.energy.idle-watts", flags->idle_watts,
                    {.help = "Idle power, instead of learning it: watts of the whole node, or a "
                             "list such as package=90,dram=12",
                     .placeholder = "WATTS"});
            set.add("collector.energy.second-thread", flags->second_thread,
                    {.help = "Power that a second busy thread adds to that of its core, as a "
                             "fraction",
                     .placeholder = "FRACTION"});
            set.add("collector.energy.model-watts", flags->model_watts,
                    {.help = "Two readings of a wattmeter for the power model, without GPUs: watts "
                             "when idle and with all CPUs busy, such as idle=95,full=410",
                     .placeholder = "WATTS"});
            set.add("collector.energy.keep-ended", flags->keep_ended,
                    {.help = "Maximum time for which the energy of ended units stays exported"});
            set.add("collector.energy.state-file", flags->state_file,
                    {.help = "File that keeps the learned idle power over restarts; empty for "
                             "none. In a service of systemd with StateDirectory=, the default is "
                             "energy.json there",
                     .placeholder = "FILE"});
          },
      .prepare = [flags](CollectorContext& context) { return prepare(*flags, context); },
      .create = [flags](
                    const CollectorContext& context,
                    const Sources& sources) { return create_energy(*flags, context, sources); }};
}

}  // namespace ceems::exporter
