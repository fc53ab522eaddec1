#include "exporter/collectors/lsf.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "exporter/collectors/gpu_map.h"
#include "exporter/collectors/unit_collector.h"
#include "exporter/gpu/claim/batch_claims.h"
#include "exporter/lsf/allocations.h"
#include "exporter/options.h"
#include "exporter/unit/cgroup_unit_source.h"
#include "host/read_file.h"
#include "os/command.h"

namespace ceems::exporter {
namespace {

struct LsfFlags {
  UnitMetricOptions metrics;
  std::string bjobs;
  std::string evidence = "any";
};

/// The absolute path of bjobs. `given` may be that of the program or of its directory.
Result<std::string> find_bjobs(const std::string& given) {
  if (given.empty()) {
    auto found = os::find_program("bjobs", os::process_environment()["PATH"]);
    return found ? std::move(found)
                 : fail(std::move(found).error().with_context(
                       "bjobs of LSF, whose path --collector.lsf.bjobs-path may give"));
  }
  std::error_code error;
  std::filesystem::path path = std::filesystem::absolute(given, error);
  if (std::filesystem::is_directory(path, error)) {
    path /= "bjobs";
  }
  if (::access(path.c_str(), X_OK) != 0) {
    return fail(errno_error(errno, "--collector.lsf.bjobs-path " + path.string()));
  }
  return path.string();
}

/// Starts the thread that asks LSF, with the other threads of the collector. Adds no series.
class AllocationThread final : public SubCollector {
 public:
  explicit AllocationThread(std::shared_ptr<lsf::Allocations> allocations)
      : allocations_(std::move(allocations)) {}

  [[nodiscard]] std::string_view name() const override { return {}; }
  Result<> collect(const UnitSnapshot& /*snapshot*/, metrics::Sink& /*sink*/) override {
    return {};
  }
  void start() override { allocations_->start(); }
  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    allocations_->wait_first(deadline);
  }

 private:
  const std::shared_ptr<lsf::Allocations> allocations_;
};

Result<std::unique_ptr<SubCollector>> make_lsf_gpu_map(
    const CollectorContext& context,
    bool unified,
    const LsfOptions& options,
    std::shared_ptr<lsf::Allocations> allocations,
    const std::shared_ptr<gpu::Inventory>& inventory) {
  const auto minors =
      host::read_file((context.paths.proc / "driver/nvidia-caps/mig-minors").string());
  gpu::BatchClaimOptions claims{
      .collector = "lsf",
      .paths = context.paths,
      .unified = unified,
      .job_variable = "LSB_BATCH_JID",
      .trusted_only = options.evidence == "trusted",
      .mig_minors = minors ? gpu::parse_mig_minors(*minors) : std::vector<gpu::MigMinor>{},
      .processes = options.processes};
  claims.manager_gpus =
      [allocations = std::move(allocations)](const Unit& unit) -> std::optional<gpu::ManagerGpus> {
    const auto map = allocations->last();
    if (map == nullptr) {
      return std::nullopt;
    }
    const auto found = map->find(unit.uuid);
    return found == map->end() ? std::nullopt
                               : std::optional(gpu::ManagerGpus{.minors = found->second.gpu_minors,
                                                                .instances = found->second.mig});
  };
  return gpu::make_map_collector(context, inventory,
                                 "A value > 0 indicates the job using current GPU",
                                 gpu::make_batch_claims(std::move(claims), inventory));
}

}  // namespace

Result<std::unique_ptr<Collector>> make_lsf_collector(
    const CollectorContext& context,
    const CgroupFlags& cgroups,
    const SubCollectorSet& subs,
    UnitMetricOptions metrics,
    LsfOptions options,
    const std::shared_ptr<gpu::Inventory>& inventory) {
  const host::CgroupMount mount = cgroups.mount(context);
  CEEMS_TRY(source,
            CgroupUnitSource::create({.manager = "lsf",
                                      .paths = context.paths,
                                      .mount = mount,
                                      .active_subsystem = cgroups.active_subsystem,
                                      .stats = {.swap = metrics.swap, .pressure = metrics.pressure},
                                      .keep_ended = context.keep_ended},
                                     lsf_matcher(), *context.clock));
  auto allocations = std::make_shared<lsf::Allocations>(
      lsf::AllocationOptions{.fetch = std::move(options.fetch)}, *context.clock);
  auto units = std::make_shared<lsf::AllocatedUnits>(std::move(source), allocations);
  CEEMS_TRY(sub_collectors, subs.create(context, mount, *units));
  if (inventory != nullptr && !inventory->has_no_gpus()) {
    CEEMS_TRY(map, make_lsf_gpu_map(context, mount.mode == host::CgroupMode::kUnified, options,
                                    allocations, inventory));
    units->want_processes();
    sub_collectors.insert(sub_collectors.begin(), std::move(map));
  }
  sub_collectors.insert(sub_collectors.begin(),
                        std::make_unique<AllocationThread>(std::move(allocations)));
  return make_unit_collector(
      {.name = "lsf",
       .source = std::move(units),
       .metrics = UnitMetrics(context.hostname, for_mount(metrics, mount, context, "lsf")),
       .subs = std::move(sub_collectors)},
      *context.clock);
}

/// --collector.lsf: jobs of IBM Spectrum LSF.
CollectorSpec lsf_collector(const std::shared_ptr<UnitFlags>& shared) {
  auto values = std::make_shared<LsfFlags>();
  return {.name = "lsf",
          .help = "Enable the lsf collector (jobs of IBM Spectrum LSF on this node)",
          .stage = Stage::kJobs,
          .add_flags =
              [values](config::FlagSet& flags) {
                flags.add("collector.lsf.swap-memory-metrics", values->metrics.swap,
                          {.help = "Swap use of each job"});
                flags.add("collector.lsf.psi-metrics", values->metrics.pressure,
                          {.help = "Pressure stall times of each job (cgroup v2)"});
                flags.add_enum(
                    "collector.lsf.gpu-evidence", values->evidence, {"any", "trusted"},
                    {.help = "Evidence for the MIG instances of a job: any, which includes the "
                             "environment of its processes, or trusted: only what users cannot "
                             "forge"});
                flags.add("collector.lsf.bjobs-path", values->bjobs,
                          {.help = "Path of bjobs; empty: search PATH", .hidden = true});
              },
          .create = [values, shared](const CollectorContext& context,
                                     const Sources&) -> Result<std::unique_ptr<Collector>> {
            CEEMS_TRY(bjobs, find_bjobs(values->bjobs));
            LsfOptions options{.evidence = values->evidence, .processes = shared->gpus.processes()};
            options.fetch = [path = std::move(bjobs),
                             host = node_name(false)](const std::stop_token& stop) {
              return lsf::run_bjobs(os::real_runner(), path, host, stop);
            };
            return make_lsf_collector(context, shared->cgroups, shared->subs, values->metrics,
                                      std::move(options), shared->gpus.inventory(context));
          }};
}

}  // namespace ceems::exporter
