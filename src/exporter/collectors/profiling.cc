#include <sys/capability.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "exporter/collector.h"
#include "exporter/profile/continuous.h"
#include "exporter/profile/push/config.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {
namespace {

struct ProfilingFlags {
  bool on = false;
  std::string config;
  bool expand = false;
  std::vector<std::string> variables;
  bool self = false;
  bool taken = false;  ///< by the units of one manager
};

/// Shows what the profiler did. Its samples go to Pyroscope.
class Profiling final : public SubCollector {
 public:
  Profiling(std::string hostname, std::unique_ptr<profile::ContinuousProfiler> profiler)
      : hostname_(std::move(hostname)), profiler_(std::move(profiler)) {}

  [[nodiscard]] std::string_view name() const override { return "profiling"; }

  Result<> collect(const UnitSnapshot& snapshot, metrics::Sink& sink) override {
    const profile::ProfilerCounters counters = profiler_->counters();
    const auto add = [&](const metrics::Desc& desc, std::uint64_t value) {
      sink.add(desc, static_cast<double>(value), {snapshot.manager, hostname_});
    };
    add(samples_, counters.samples);
    add(lost_, counters.lost);
    add(queued_, counters.push.queued);
    for (const auto& [result, value] : {std::pair{"pushed", counters.push.pushed},
                                        {"failed", counters.push.failed},
                                        {"dropped", counters.push.dropped}}) {
      sink.add(profiles_, static_cast<double>(value), {snapshot.manager, hostname_, result});
    }
    return {};
  }

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return {CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE};
  }

  void start() override { profiler_->start(); }

 private:
  static metrics::Desc make_desc(std::string_view name,
                                 std::string_view help,
                                 metrics::Type type,
                                 std::vector<std::string> more = {}) {
    std::vector<std::string> labels{"manager", "hostname"};
    labels.insert(labels.end(), more.begin(), more.end());
    return {"ceems_profiler_" + std::string(name), std::string(help), type, std::move(labels)};
  }

  std::string hostname_;
  std::unique_ptr<profile::ContinuousProfiler> profiler_;
  metrics::Desc samples_ =
      make_desc("samples_total", "Stacks that were sampled", metrics::Type::kCounter);
  metrics::Desc lost_ = make_desc("lost_samples_total",
                                  "Stacks that did not fit into the buffer of the kernel",
                                  metrics::Type::kCounter);
  metrics::Desc profiles_ = make_desc("profiles_total",
                                      "Profiles by what became of them: pushed, failed or dropped",
                                      metrics::Type::kCounter,
                                      {"result"});
  metrics::Desc queued_ =
      make_desc("queued_profiles", "Profiles that wait to be pushed", metrics::Type::kGauge);
};

Result<std::unique_ptr<SubCollector>> create_profiling(ProfilingFlags& flags,
                                                       const CollectorContext& context,
                                                       UnitSource& source) {
  static constexpr std::array<std::string_view, 4> kManagers = {"slurm", "lsf", "openpbs", "k8s"};
  if (!flags.on || flags.taken ||
      std::ranges::find(kManagers, source.manager()) == kManagers.end()) {
    return nullptr;
  }
  CEEMS_TRY(config, profile::read_config(flags.config, flags.expand, context.hostname));
  auto profiler = profile::ContinuousProfiler::create(
      {.config = std::move(config), .variables = flags.variables, .self = flags.self}, source,
      context.paths, *context.clock);
  if (!profiler) {
    log::error("no profiles; 'ceems_exporter doctor' says what is missing",
               {{"collector", "profiling"}, {"err", profiler.error().message}});
    return nullptr;
  }
  flags.taken = true;
  return std::make_unique<Profiling>(context.hostname, *std::move(profiler));
}

}  // namespace

/// --profiling.ebpf*
SubCollectorSpec profiling_sub_collector() {
  auto values = std::make_shared<ProfilingFlags>();
  return {.name = "profiling",
          .add_flags =
              [values](config::FlagSet& flags) {
                flags.add(
                    "profiling.ebpf", values->on,
                    {.help = "Sample the stacks of batch jobs or pods and push the profiles to "
                             "Pyroscope"});
                flags.add("profiling.ebpf.config.file", values->config,
                          {.help = "Configuration file of the profiler",
                           .env = "CEEMS_EXPORTER_PROFILING_CONFIG_FILE"});
                flags.add("profiling.ebpf.config.file.expand-env-vars", values->expand,
                          {.help = "Replace $NAME and ${NAME} in that file"});
                flags.add("profiling.ebpf.env-var", values->variables,
                          {.help = "Profile only processes with an environment variable whose name "
                                   "starts with this (NAME= for exactly NAME); may be repeated"});
                flags.add("profiling.ebpf.self-profiler", values->self,
                          {.help = "Profile the exporter, too"});
              },
          .create = [values](
                        const CollectorContext& context, const host::CgroupMount&,
                        UnitSource& source) { return create_profiling(*values, context, source); }};
}

}  // namespace ceems::exporter
