#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"
#include "exporter/collector.h"
#include "exporter/collectors/unit_flags.h"
#include "exporter/energy/options.h"
#include "exporter/source/slow_source.h"
#include "exporter/unit/thread_use.h"
#include "host/cpu_topology.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

// A walk of the cgroups within this time is shared with scrapes.
constexpr auto kSharedWalk = std::chrono::seconds(5);

/// Where the threads of a unit run, and how many of its GPUs are elsewhere.
struct UnitPlacement {
  std::string manager;
  std::string cgrouphostname;
  std::string uuid;
  std::size_t busy_threads = 0;
  std::size_t cpus = 0;                      // 0: no thread ran
  std::optional<std::size_t> far_gpus = {};  // absent if no GPU of the unit has a known NUMA node
};

struct Placement {
  std::vector<UnitPlacement> units;
  std::size_t left_out = 0;
};

std::vector<int> cpus_in(const std::filesystem::path& file) {
  const auto text = host::read_file(file.string(), host::kMaxFileSize);
  return (text ? host::parse_cpu_list(*text) : std::nullopt).value_or(std::vector<int>());
}

/// Looks at all units; used by one thread.
class PlacementReader {
 public:
  PlacementReader(host::Paths paths,
                  std::vector<std::shared_ptr<UnitSource>> units,
                  std::shared_ptr<gpu::Inventory> inventory,
                  std::shared_ptr<gpu::ProcessList> processes)
      : paths_(std::move(paths)),
        sources_(std::move(units)),
        inventory_(std::move(inventory)),
        processes_(std::move(processes)),
        threads_(paths_.proc) {}

  Result<std::shared_ptr<const Placement>> read() {
    std::vector<std::shared_ptr<const UnitSnapshot>> snapshots;
    std::vector<std::pair<const UnitSource*, const Unit*>> units;
    std::vector<std::span<const int>> pids;
    for (const auto& source : sources_) {
      auto snapshot = source->snapshot(kSharedWalk);
      if (!snapshot) {
        continue;  // the collector of these units reports the error
      }
      for (const Unit& unit : (*snapshot)->units) {
        if (!unit.ended) {
          units.emplace_back(source.get(), &unit);
          pids.emplace_back(unit.pids);
        }
      }
      snapshots.push_back(*std::move(snapshot));
    }
    CEEMS_TRY(look, threads_.look(pids, cpus_in(paths_.sys / "devices/system/cpu/online")));
    auto placement = std::make_shared<Placement>();
    placement->left_out = look.left_out;
    cpus_near_.clear();
    for (std::size_t i = 0; i < units.size(); ++i) {
      const auto& [source, unit] = units[i];
      if (const auto& threads = look.units.at(i)) {
        placement->units.push_back({.manager = std::string(source->manager()),
                                    .cgrouphostname = unit->cgrouphostname,
                                    .uuid = unit->uuid,
                                    .busy_threads = threads->busy,
                                    .cpus = threads->cpus.size(),
                                    .far_gpus = far_gpus(*source, *unit, threads->cpus)});
      }
    }
    return placement;
  }

 private:
  /// GPUs, by uuid, that are assigned to the unit or have one of its processes.
  [[nodiscard]] std::set<std::string> gpus_of(const UnitSource& source, const Unit& unit) const {
    std::set<std::string> uuids;
    for (const gpu::Assignment& assignment : *inventory_->assignments().all()) {
      if (assignment.manager == source.manager() && assignment.uuid == unit.uuid &&
          assignment.cgrouphostname == unit.cgrouphostname) {
        uuids.insert(assignment.device_uuid);
      }
    }
    for (const gpu::ProcessList::Entry& entry : *processes_->all()) {
      if (std::ranges::find_first_of(entry.pids, unit.pids) != entry.pids.end()) {
        uuids.insert(entry.device_uuid);
      }
    }
    return uuids;
  }

  /// The CPUs of the NUMA node to which the GPU is connected; empty if that is not known.
  const std::vector<int>& cpus_near(const gpu::PciAddress& address) {
    const auto [place, added] = cpus_near_.try_emplace(address);
    if (added) {
      const auto file = paths_.sys / "bus/pci/devices" / to_string(address) / "numa_node";
      const auto text = host::read_file(file.string(), host::kMaxValueSize);
      const auto node = text ? parse_int<unsigned>(trim(*text)) : std::nullopt;  // -1: no node
      if (node) {
        place->second =
            cpus_in(paths_.sys / fmt::format("devices/system/node/node{}/cpulist", *node));
      }
    }
    return place->second;
  }

  std::optional<std::size_t> far_gpus(const UnitSource& source,
                                      const Unit& unit,
                                      const std::vector<int>& cpus) {
    if (inventory_ == nullptr || cpus.empty()) {
      return std::nullopt;
    }
    const auto devices = inventory_->devices();
    const std::set<std::string> uuids =
        devices->empty() ? std::set<std::string>() : gpus_of(source, unit);
    std::optional<std::size_t> far;
    for (const gpu::Device& device : *devices) {
      if (!device.address || !uuids.contains(device.uuid)) {
        continue;
      }
      const std::vector<int>& near = cpus_near(*device.address);
      if (!near.empty()) {
        far = far.value_or(0) + (std::ranges::find_first_of(near, cpus) == near.end() ? 1 : 0);
      }
    }
    return far;
  }

  const host::Paths paths_;
  const std::vector<std::shared_ptr<UnitSource>> sources_;
  const std::shared_ptr<gpu::Inventory> inventory_;  // null if no collector uses GPUs
  const std::shared_ptr<gpu::ProcessList> processes_;
  ThreadUse threads_;
  std::map<gpu::PciAddress, std::vector<int>> cpus_near_;  // in one look
};

metrics::Desc placement_unit_desc(const char* stem, const char* help) {
  return {std::string("ceems_compute_unit_") + stem,
          help,
          metrics::Type::kGauge,
          {"manager", "hostname", "cgrouphostname", "uuid"}};
}

class PlacementCollector final : public Collector {
 public:
  PlacementCollector(const CollectorContext& context,
                     std::chrono::milliseconds interval,
                     std::unique_ptr<PlacementReader> reader)
      : hostname_(context.hostname),
        reader_(std::move(reader)),
        source_({.collector = "placement",
                 .source = "placement",
                 .period = interval,
                 .max_age = 3 * interval,
                 .patience = std::chrono::milliseconds(0)},
                *context.clock,
                [this](const std::stop_token&) { return reader_->read(); }) {}

  void start() override { source_.start(); }
  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    source_.wait_first(deadline);
  }
  [[nodiscard]] std::vector<SourceAge> source_ages() const override { return source_.ages(); }

  Result<> collect(metrics::Sink& sink) override {
    const auto value = source_.value();
    if (!value) {
      return fail(ErrorCode::kUnavailable, "no recent look at the threads of units: {}",
                  source_.last_error());
    }
    for (const UnitPlacement& unit : value->value->units) {
      const auto add = [&](const metrics::Desc& desc, std::size_t number) {
        sink.add(desc, static_cast<double>(number),
                 {unit.manager, hostname_, unit.cgrouphostname, unit.uuid});
      };
      add(busy_, unit.busy_threads);
      if (unit.cpus > 0) {
        add(cpus_, unit.cpus);
      }
      if (unit.far_gpus) {
        add(far_, *unit.far_gpus);
      }
    }
    sink.add(left_out_, static_cast<double>(value->value->left_out), {hostname_});
    return {};
  }

 private:
  const std::string hostname_;
  const metrics::Desc busy_ = placement_unit_desc(
      "busy_threads",
      "Threads of the unit that ran or waited for a CPU for more than half of the time "
      "between the last two looks.");
  const metrics::Desc cpus_ = placement_unit_desc(
      "cpu_affinity_size",
      "CPUs on which the threads of the unit that ran since the last look may run.");
  const metrics::Desc far_ = placement_unit_desc(
      "gpu_numa_far", "GPUs of the unit on NUMA nodes without a CPU on which its threads may run.");
  const metrics::Desc left_out_{"ceems_placement_units_left_out",
                                "Units whose threads were too many to look at.",
                                metrics::Type::kGauge,
                                {"hostname"}};
  const std::unique_ptr<PlacementReader> reader_;
  SlowSource<std::shared_ptr<const Placement>> source_;  // last, because its thread uses the reader
};

Result<std::unique_ptr<Collector>> create_placement(const std::string& interval_text,
                                                    const UnitFlags& shared,
                                                    const CollectorContext& context,
                                                    const Sources& sources) {
  CEEMS_TRY(interval,
            energy::parse_duration("--collector.placement.interval", interval_text,
                                   std::chrono::milliseconds(100), std::chrono::minutes(10)));
  if (sources.units.empty()) {
    return fail(ErrorCode::kInvalidArgument, "expected a collector of units to be on");
  }
  for (const auto& source : sources.units) {
    source->want_processes();
  }
  return std::make_unique<PlacementCollector>(
      context, interval,
      std::make_unique<PlacementReader>(context.paths, sources.units,
                                        shared.gpus.existing_inventory(), shared.gpus.processes()));
}

}  // namespace

/// --collector.placement: on which CPUs the threads of units may run, and how many want to.
CollectorSpec placement_collector(const std::shared_ptr<UnitFlags>& shared) {
  const auto interval = std::make_shared<std::string>("60s");
  return {.name = "placement",
          .help =
              "Enable the placement collector (CPUs on which the threads of each unit may run, "
              "busy threads, and GPUs on other NUMA nodes)",
          .stage = Stage::kDevices,
          .add_flags =
              [interval](config::FlagSet& flags) {
                flags.add("collector.placement.interval", *interval,
                          {.help = "Time between two looks at the threads of units"});
              },
          .create =
              [interval, shared](const CollectorContext& context, const Sources& sources) {
                return create_placement(*interval, *shared, context, sources);
              }};
}

}  // namespace ceems::exporter
