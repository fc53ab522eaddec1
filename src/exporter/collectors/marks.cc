#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "exporter/collector.h"
#include "exporter/energy/sampler.h"
#include "exporter/marks/ledger.h"
#include "exporter/marks/peer.h"
#include "exporter/marks/server.h"

namespace ceems::exporter {
namespace {

using energy::Domain;
using marks::UnitMarks;
using metrics::Desc;
using metrics::Type;

/// Exports what jobs say about themselves (docs/marks.md), with the energy of their regions.
class MarksCollector final : public Collector {
 public:
  MarksCollector(std::shared_ptr<marks::Ledger> ledger,
                 std::unique_ptr<marks::Server> server,
                 const std::string& hostname)
      : ledger_(std::move(ledger)), server_(std::move(server)), hostname_(hostname) {}

  void start() override { server_->start(); }

  Result<> collect(metrics::Sink& sink) override {
    ledger_->read([&](const marks::Ledger::View& view) {
      for (const auto& unit : view.units) {
        add(*unit, view, sink);
      }
      sink.add(taken_, static_cast<double>(view.taken));
      for (std::size_t reason = 0; reason < marks::kDropCount; ++reason) {
        sink.add(dropped_, static_cast<double>(view.dropped.at(reason)),
                 {to_string(static_cast<marks::Drop>(reason))});
      }
    });
    for (std::size_t reason = 0; reason < marks::kRefusalCount; ++reason) {
      const auto refusal = static_cast<marks::Refusal>(reason);
      sink.add(refused_, static_cast<double>(server_->refused(refusal)), {to_string(refusal)});
    }
    return {};
  }

 private:
  void add(const marks::Ledger::Entry& unit,
           const marks::Ledger::View& view,
           metrics::Sink& sink) const {
    for (const UnitMarks::Region& region : unit.marks.regions()) {
      sink.add(seconds_, region.seconds,
               {unit.manager, hostname_, unit.cgrouphostname, unit.uuid, region.name});
      sink.add(count_, static_cast<double>(region.count),
               {unit.manager, hostname_, unit.cgrouphostname, unit.uuid, region.name});
      if (region.has_energy()) {
        add_energy(unit, region, view, sink);
      }
    }
    for (const UnitMarks::Result& result : unit.marks.results()) {
      sink.add(
          results_, result.total,
          {unit.manager, hostname_, unit.cgrouphostname, unit.uuid, result.name, result.measure});
    }
    for (const UnitMarks::Fom& fom : unit.marks.foms()) {
      sink.add(fom_, fom.value,
               {unit.manager, hostname_, unit.cgrouphostname, unit.uuid, fom.name, fom.measure});
    }
  }

  void add_energy(const marks::Ledger::Entry& unit,
                  const UnitMarks::Region& region,
                  const marks::Ledger::View& view,
                  metrics::Sink& sink) const {
    const UnitMarks::Energy& energy = region.energy();
    for (const Domain domain : energy::kDomains) {
      if (view.known.at(index(domain))) {
        const double joules =
            domain == Domain::kNode ? marks::sum(energy.joules) : energy.joules.at(index(domain));
        sink.add(joules_, joules,
                 {unit.manager, hostname_, unit.cgrouphostname, unit.uuid, region.name,
                  energy::to_string(domain)});
      }
    }
    sink.add(self_joules_, energy.self,
             {unit.manager, hostname_, unit.cgrouphostname, unit.uuid, region.name});
  }

  std::shared_ptr<marks::Ledger> ledger_;
  std::unique_ptr<marks::Server> server_;
  std::string hostname_;

  const Desc joules_{"ceems_compute_unit_region_energy_joules_total",
                     "Energy of the unit on this node while the region was open, by domain. The "
                     "domain node is the sum of the others.",
                     Type::kCounter,
                     {"manager", "hostname", "cgrouphostname", "uuid", "region", "domain"}};
  const Desc self_joules_{"ceems_compute_unit_region_self_energy_joules_total",
                          "Energy of the unit on this node while the region was the innermost.",
                          Type::kCounter,
                          {"manager", "hostname", "cgrouphostname", "uuid", "region"}};
  const Desc seconds_{"ceems_compute_unit_region_seconds_total",
                      "Time in which the region was open on this node.",
                      Type::kCounter,
                      {"manager", "hostname", "cgrouphostname", "uuid", "region"}};
  const Desc count_{"ceems_compute_unit_region_count_total",
                    "How often the region ended on this node.",
                    Type::kCounter,
                    {"manager", "hostname", "cgrouphostname", "uuid", "region"}};
  const Desc results_{"ceems_compute_unit_results_total",
                      "Results that the unit has reported on this node.",
                      Type::kCounter,
                      {"manager", "hostname", "cgrouphostname", "uuid", "result", "unit"}};
  const Desc fom_{"ceems_compute_unit_fom",
                  "Figure of merit that the unit reported last on this node.",
                  Type::kGauge,
                  {"manager", "hostname", "cgrouphostname", "uuid", "fom", "unit"}};
  const Desc taken_{"ceems_exporter_marks_total", "Marks that were read.", Type::kCounter, {}};
  const Desc dropped_{"ceems_exporter_marks_dropped_total",
                      "Marks that changed nothing, by reason.",
                      Type::kCounter,
                      {"reason"}};
  const Desc refused_{"ceems_exporter_marks_refused_total",
                      "Connections of senders of marks that were refused, by reason.",
                      Type::kCounter,
                      {"reason"}};
};

Result<std::unique_ptr<Collector>> create_marks(const std::string& socket,
                                                const CollectorContext& context,
                                                const Sources& sources) {
  if (sources.units.empty() || sources.sampler == nullptr) {
    return fail(ErrorCode::kInvalidArgument,
                "expected a collector of units and --collector.energy to be on");
  }
  auto ledger = std::make_shared<marks::Ledger>();
  CEEMS_TRY_IN(
      "--collector.marks.socket", server,
      marks::Server::create(socket, marks::PeerFinder(context.paths, sources.units, *context.clock),
                            ledger, *context.clock));
  sources.sampler->on_sample([ledger](const energy::Account& account, Clock::SteadyTime now) {
    ledger->advance(account, now);
  });
  return std::make_unique<MarksCollector>(std::move(ledger), std::move(server), context.hostname);
}

}  // namespace

/// --collector.marks: regions, results and figures of merit that jobs report.
CollectorSpec marks_collector() {
  auto socket = std::make_shared<std::string>("/run/ceems/mark.sock");
  return {.name = "marks",
          .help =
              "Enable the marks collector (regions and results that jobs report, with their "
              "energy)",
          .stage = Stage::kMarks,
          .add_flags =
              [socket](config::FlagSet& flags) {
                flags.add("collector.marks.socket", *socket,
                          {.help = "Socket to which jobs send marks"});
              },
          .create =
              [socket](const CollectorContext& context, const Sources& sources) {
                return create_marks(*socket, context, sources);
              }};
}

}  // namespace ceems::exporter
