#include "exporter/collectors/pdu.h"

#include <linux/capability.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <iterator>
#include <utility>

#include "exporter/options.h"
#include "exporter/redfish/pdu.h"
#include "exporter/source/slow_source.h"
#include "host/read_file.h"
#include "metrics/desc.h"

namespace ceems::exporter {
namespace {

using redfish::NodeOutlets;

constexpr std::size_t kMaxPduConfig = std::size_t{1} << 20U;

const metrics::Desc kNodePower{"ceems_pdu_node_power_watts",
                               "Power that the node takes from the outlets of this unit.",
                               metrics::Type::kGauge,
                               {"hostname", "pdu"}};
const metrics::Desc kNodeEnergy{"ceems_pdu_node_energy_joules_total",
                                "Energy that the node took from the outlets of this unit.",
                                metrics::Type::kCounter,
                                {"hostname", "pdu"}};

/// One unit.
struct PduUnit {
  std::string name;
  redfish::PduReader reader;
  SlowSource<std::vector<NodeOutlets>> source;  // last: its thread uses the reader

  PduUnit(redfish::PduConfig config,
          std::unique_ptr<redfish::Session> session,
          const PduOptions& options,
          const Clock& clock)
      : name(std::move(config.name)),
        reader(std::move(session), std::move(config.outlets), clock),
        source({.collector = "pdu",
                .source = "pdu " + name,
                .period = options.period,
                .patience = std::chrono::milliseconds(0)},
               clock,
               [this](const std::stop_token& stop) { return reader.read(stop); }) {}
};

class PduCollector final : public Collector {
 public:
  PduCollector(std::deque<PduUnit> units, bool reads_files)
      : units_(std::move(units)), reads_files_(reads_files) {}

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return reads_files_ ? std::vector<os::Capability>{CAP_DAC_READ_SEARCH}
                        : std::vector<os::Capability>{};
  }
  void start() override {
    for (auto& unit : units_) {
      unit.source.start();
    }
  }
  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    for (auto& unit : units_) {
      unit.source.wait_first(deadline);
    }
  }
  Result<> collect(metrics::Sink& sink) override {
    std::string failed;
    for (auto& unit : units_) {
      const auto value = unit.source.value();
      if (!value) {
        const std::string error = unit.source.last_error();
        failed += (failed.empty() ? "" : "; ") + unit.name + ": " +
                  (error.empty() ? "no reading yet" : error);
        continue;
      }
      for (const NodeOutlets& node : value->value) {
        if (node.watts) {
          sink.add(kNodePower, *node.watts, {node.node, unit.name});
        }
        if (node.joules) {
          sink.add(kNodeEnergy, *node.joules, {node.node, unit.name});
        }
      }
    }
    return failed.empty() ? Result<>() : fail(ErrorCode::kNoData, "{}", failed);
  }
  [[nodiscard]] std::vector<SourceAge> source_ages() const override {
    std::vector<SourceAge> ages;
    for (const auto& unit : units_) {
      std::ranges::move(unit.source.ages(), std::back_inserter(ages));
    }
    return ages;
  }

 private:
  std::deque<PduUnit> units_;
  bool reads_files_;
};

}  // namespace

Result<std::unique_ptr<Collector>> make_pdu_collector(const CollectorContext& context,
                                                      const PduOptions& options) {
  if (options.config_file.empty()) {
    return fail(ErrorCode::kInvalidArgument, "--collector.pdu.config.file is not given");
  }
  CEEMS_TRY(text, host::read_file(options.config_file, kMaxPduConfig));
  CEEMS_TRY(configs, redfish::parse_pdu_config(text, options.config_file, options.context));
  std::deque<PduUnit> units;
  bool reads_files = false;
  for (redfish::PduConfig& config : configs) {
    reads_files = reads_files || config.service.reads_files();
    CEEMS_TRY_IN(options.config_file, session, redfish::Session::create(config.service));
    units.emplace_back(std::move(config), std::move(session), options, *context.clock);
  }
  return std::make_unique<PduCollector>(std::move(units), reads_files);
}

/// --collector.pdu: power and energy of nodes at the outlets of power distribution units. For the
/// service node.
CollectorSpec pdu_collector() {
  const auto file = std::make_shared<std::string>();
  return {.name = "pdu",
          .help =
              "Enable the pdu collector (power of nodes at the outlets of power distribution "
              "units; for a service node)",
          .add_flags =
              [file](config::FlagSet& set) {
                set.add("collector.pdu.config.file", *file,
                        {.help = "File with the addresses of the units, and which node each of "
                                 "their outlets feeds"});
              },
          .create =
              [file](const CollectorContext& context, const Sources&) {
                const std::string path =
                    file->empty() ? ""
                                  : std::filesystem::absolute(*file).lexically_normal().string();
                return make_pdu_collector(
                    context, {.config_file = path,
                              .context = {.node_name = node_name(false), .environment = {}}});
              }};
}

}  // namespace ceems::exporter
