#include "exporter/collectors/rdma.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "exporter/rdma/command_reader.h"
#include "exporter/rdma/netlink.h"
#include "exporter/rdma/reader.h"
#include "exporter/source/slow_source.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

using rdma::kPortCounters;
using rdma::kQpCounters;

constexpr std::chrono::seconds kPeriod{15};
constexpr std::chrono::minutes kRdmaMaxAge{1};
// Each read may run the command four times. Scrapes are seldom closer together than this.
constexpr std::chrono::seconds kFreshEnough{5};
constexpr std::chrono::milliseconds kModesAtStart{1000};
constexpr std::chrono::seconds kModesLater{5};
constexpr std::string_view kSystemPrograms = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";

/// In the order of kQpCounters.
constexpr std::array<std::string_view, kQpCounters.size()> kQpCounterHelp{
    "Number of received write requests for the associated QPs",
    "Number of received read requests for the associated QPs",
    "Number of received atomic request for the associated QPs",
    "Number of times requester detected CQEs completed with errors",
    "Number of times requester detected CQEs completed with flushed errors",
    "Number of times requester detected remote access errors",
    "Number of times requester detected remote invalid request errors",
    "Number of times responder detected CQEs completed with errors",
    "Number of times responder detected CQEs completed with flushed errors",
    "Number of times responder detected local length errors",
    "Number of times responder detected remote access errors"};

metrics::Desc rdma_desc(std::string_view suffix,
                        std::string_view help,
                        metrics::Type type,
                        bool of_unit) {
  std::vector<std::string> labels{"manager", "hostname", "device", "port"};
  if (of_unit) {
    labels.emplace_back("uuid");
  }
  return {"ceems_rdma_" + std::string(suffix), std::string(help), type, std::move(labels)};
}

/// What the thread for resources read last. Scrapes share it instead of copying it.
using SharedResources = std::shared_ptr<const rdma::Resources>;
/// Null if the machine has no adapters.
using SharedPorts = std::shared_ptr<const std::vector<rdma::PortValues>>;

Result<SharedPorts> read_ports(const std::string& sys) {
  auto ports = rdma::read_ports(sys);
  if (ports) {
    return std::make_shared<const std::vector<rdma::PortValues>>(*std::move(ports));
  }
  if (ports.error().code == ErrorCode::kNoData) {
    return nullptr;
  }
  return fail(std::move(ports).error());
}

class Rdma final : public SubCollector {
 public:
  Rdma(const CollectorContext& context, std::unique_ptr<rdma::Reader> reader)
      : hostname_(context.hostname),
        reader_(std::move(reader)),
        ports_({.collector = "rdma",
                .source = "infiniband",
                .period = kPeriod,
                .max_age = kRdmaMaxAge},
               *context.clock,
               [sys = context.paths.sys.string()](const std::stop_token&) {
                 return read_ports(sys);
               }) {
    if (reader_) {
      counting_ = std::make_unique<rdma::Counting>(*reader_, *context.clock);
      // Determined now, because it decides which privileges are kept.
      find_modes(context.start_patience(kModesAtStart), {});
      resources_.emplace(SlowSourceOptions{.collector = "rdma",
                                           .source = "rdma",
                                           .period = kPeriod,
                                           .max_age = kRdmaMaxAge,
                                           .fresh_enough = kFreshEnough},
                         *context.clock,
                         [this](const std::stop_token& stop) { return read(stop); });
    }
    for (std::size_t i = 0; i < kQpCounters.size(); ++i) {
      qp_counters_.push_back(
          rdma_desc(kQpCounters.at(i), kQpCounterHelp.at(i), metrics::Type::kCounter, true));
    }
    for (const rdma::PortCounter& counter : kPortCounters) {
      port_counters_.push_back(
          rdma_desc(counter.series, counter.help, metrics::Type::kCounter, false));
    }
  }

  [[nodiscard]] std::string_view name() const override { return "rdma"; }

  Result<> collect(const UnitSnapshot& snapshot, metrics::Sink& sink) override {
    const auto ports = ports_.value();
    if (ports && !ports->value) {
      return fail(ErrorCode::kNoData, "no RDMA adapters");
    }
    if (ports) {
      add_ports(snapshot.manager, *ports->value, sink);
    }
    if (resources_) {
      if (const auto resources = resources_->value()) {
        add_units(snapshot, *resources->value, sink);
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return counting_ && (counting_->possible() || !modes_known_) ? reader_->capabilities()
                                                                 : std::vector<os::Capability>();
  }

  [[nodiscard]] std::vector<SourceAge> source_ages() const override {
    return resources_ ? resources_->ages() : std::vector<SourceAge>();
  }

  void start() override {
    ports_.start();
    if (resources_) {
      resources_->start();
    }
  }

  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    ports_.wait_first(deadline);
    if (resources_) {
      resources_->wait_first(deadline);
    }
  }

 private:
  /// Called in the constructor, and in the thread if that timed out.
  void find_modes(std::chrono::milliseconds limit, const std::stop_token& stop) {
    const auto found = reader_->modes(limit, stop);
    modes_known_ = found || found.error().code != ErrorCode::kTimeout;
    if (found) {
      counting_->set_modes(*found);
    } else if (!std::exchange(modes_failed_, true)) {
      log::error("cannot determine whether queue pairs can be counted by process",
                 {{"collector", "rdma"}, {"err", found.error().message}});
    }
  }

  /// Runs in the thread.
  Result<SharedResources> read(const std::stop_token& stop) {
    if (!modes_known_) {
      find_modes(kModesLater, stop);
    }
    counting_->switch_on();
    CEEMS_TRY(resources, reader_->read(counting_->possible(), stop));
    return std::make_shared<const rdma::Resources>(std::move(resources));
  }

  void add_ports(std::string_view manager,
                 const std::vector<rdma::PortValues>& ports,
                 metrics::Sink& sink) const {
    for (const rdma::PortValues& port : ports) {
      if (port.state > 0) {
        sink.add(state_, static_cast<double>(port.state),
                 {manager, hostname_, port.device, port.port});
      }
      for (std::size_t i = 0; i < kPortCounters.size(); ++i) {
        if (port.counters.at(i) > 0) {
          sink.add(port_counters_[i], static_cast<double>(port.counters.at(i)),
                   {manager, hostname_, port.device, port.port});
        }
      }
    }
  }

  void add_units(const UnitSnapshot& snapshot,
                 const rdma::Resources& resources,
                 metrics::Sink& sink) const {
    std::unordered_map<int, std::string_view> owners;
    for (const Unit& unit : snapshot.units) {
      for (const int pid : unit.ended ? std::vector<int>() : unit.pids) {
        owners.emplace(pid, unit.uuid);
      }
    }
    const auto units = rdma::by_unit(resources, [&owners](int pid) {
      const auto owner = owners.find(pid);
      return owner != owners.end() ? owner->second : std::string_view();
    });
    const auto add_objects = [&](const auto& objects, const auto& count, const auto& size) {
      for (const auto& [uuid, held] : objects) {
        sink.add(count, static_cast<double>(held.count),
                 {snapshot.manager, hostname_, held.device, "", uuid});
        sink.add(size, static_cast<double>(held.size),
                 {snapshot.manager, hostname_, held.device, "", uuid});
      }
    };
    add_objects(units.regions, regions_, region_bytes_);
    add_objects(units.queues, queues_, queue_entries_);
    for (const auto& [uuid, held] : units.pairs) {
      sink.add(pairs_, static_cast<double>(held.count),
               {snapshot.manager, hostname_, held.device, held.port, uuid});
      for (std::size_t i = 0; i < kQpCounters.size(); ++i) {
        if (held.counters.at(i) > 0) {
          sink.add(qp_counters_[i], static_cast<double>(held.counters.at(i)),
                   {snapshot.manager, hostname_, held.device, held.port, uuid});
        }
      }
    }
  }

  std::string hostname_;
  metrics::Desc regions_ =
      rdma_desc("mrs_active", "Number of active MRs", metrics::Type::kGauge, true);
  metrics::Desc region_bytes_ =
      rdma_desc("mrs_len_active", "Length of active MRs", metrics::Type::kGauge, true);
  metrics::Desc queues_ =
      rdma_desc("cqs_active", "Number of active CQs", metrics::Type::kGauge, true);
  metrics::Desc queue_entries_ =
      rdma_desc("cqe_len_active", "Length of active CQs", metrics::Type::kGauge, true);
  metrics::Desc pairs_ =
      rdma_desc("qps_active", "Number of active QPs", metrics::Type::kGauge, true);
  metrics::Desc state_ = rdma_desc(
      "state_id",
      "State of the InfiniBand port (0: no change, 1: down, 2: init, 3: armed, 4: active, 5: act "
      "defer)",
      metrics::Type::kGauge,
      false);
  std::vector<metrics::Desc> qp_counters_;
  std::vector<metrics::Desc> port_counters_;
  // Destroyed in reverse order: the thread stops first, then the reader restores the counting
  // modes.
  std::unique_ptr<rdma::Reader> reader_;
  std::unique_ptr<rdma::Counting> counting_;
  bool modes_known_ = false;
  bool modes_failed_ = false;
  SlowSource<SharedPorts> ports_;
  std::optional<SlowSource<SharedResources>> resources_;
};

}  // namespace

std::unique_ptr<SubCollector> make_rdma(const CollectorContext& context,
                                        UnitSource& source,
                                        std::unique_ptr<rdma::Reader> reader) {
  if (reader) {
    source.want_processes();
  }
  return std::make_unique<Rdma>(context, std::move(reader));
}

std::unique_ptr<rdma::Reader> choose_rdma_reader(const CollectorContext& context,
                                                 const RdmaOptions& options,
                                                 os::CommandRunner& runner) {
  if (!host::is_directory((context.paths.sys / "class/infiniband").string())) {
    log::debug("no RDMA adapters", {{"collector", "rdma"}});
    return nullptr;
  }
  std::string reason;
  if (options.command.empty() && context.paths.sys == "/sys") {
    auto netlink = rdma::NetlinkReader::create();
    if (netlink) {
      return *std::move(netlink);
    }
    reason = netlink.error().message + "; ";
  }
  const auto program = options.command.empty()
                           ? os::find_program("rdma", options.search_path)
                           : Result<std::string>(std::filesystem::absolute(options.command));
  if (!program) {
    log::error("RDMA objects of units cannot be read; only ports are exported",
               {{"collector", "rdma"}, {"err", reason + program.error().message}});
    return nullptr;
  }
  return std::make_unique<rdma::CommandReader>(
      *program, std::map<std::string, std::string>{{"PATH", options.search_path}, {"LC_ALL", "C"}},
      runner);
}

/// --collector.rdma.*
SubCollectorSpec rdma_sub_collector() {
  auto options = std::make_shared<RdmaOptions>();
  return {
      .name = "rdma",
      .add_flags =
          [options](config::FlagSet& flags) {
            flags.add(
                "collector.rdma.stats", options->on,
                {.help = "Export RDMA objects and counters of each unit, and counters of ports"});
            flags.add(
                "collector.rdma.cmd", options->command,
                {.help = "Path of the rdma command, used instead of netlink", .hidden = true});
          },
      .create = [options](const CollectorContext& context, const host::CgroupMount&,
                          UnitSource& source) -> Result<std::unique_ptr<SubCollector>> {
        if (!options->on) {
          return nullptr;
        }
        const char* path = std::getenv("PATH");
        options->search_path = path != nullptr && *path != '\0'
                                   ? std::string(path) + ":" + std::string(kSystemPrograms)
                                   : std::string(kSystemPrograms);
        return make_rdma(context, source, choose_rdma_reader(context, *options, os::real_runner()));
      }};
}

}  // namespace ceems::exporter
