#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "exporter/collector.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {
namespace {

struct Flags {
  bool io_metrics = false;
  bool network_metrics = false;
  std::vector<std::string> mount_points;
  bool profiling = false;
  std::string profiling_config;
  bool profiling_expand = false;
  std::vector<std::string> profiling_variables;
  bool profiling_self = false;
  bool warned = false;
};

void warn(Flags& flags) {
  if (flags.warned) {
    return;
  }
  flags.warned = true;
  if (flags.io_metrics || flags.network_metrics) {
    log::warn("this version has no eBPF metrics: --collector.ebpf.* has no effect");
  }
  if (flags.profiling) {
    log::warn("this version has no profiler: --profiling.ebpf has no effect");
  }
}

}  // namespace

/// --collector.ebpf.* and --profiling.ebpf*: this version has neither eBPF metrics nor the
/// profiler. It accepts the flags with one warning for each that is given, so that it starts with
/// command lines written for the reference.
SubCollectorSpec ebpf_sub_collector() {
  auto values = std::make_shared<Flags>();
  return {
      .name = "ebpf",
      .add_flags =
          [values](config::FlagSet& flags) {
            flags.add("collector.ebpf.io-metrics", values->io_metrics,
                      {.help = "File I/O of each unit by eBPF (not in this version: accepted "
                               "without effect)"});
            flags.add(
                "collector.ebpf.network-metrics", values->network_metrics,
                {.help = "Network traffic of each unit by eBPF (not in this version: accepted "
                         "without effect)"});
            flags.add("collector.ebpf.fs-mount-point", values->mount_points,
                      {.help = "Mount points of the file I/O", .hidden = true});
            flags.add("profiling.ebpf", values->profiling,
                      {.help = "Profiler (not in this version)", .hidden = true});
            flags.add("profiling.ebpf.config.file", values->profiling_config,
                      {.help = "Configuration file of the profiler",
                       .env = "CEEMS_EXPORTER_PROFILING_CONFIG_FILE",
                       .hidden = true});
            flags.alias("profiling.ebpf.config-file", "profiling.ebpf.config.file");
            flags.add("profiling.ebpf.config.file.expand-env-vars", values->profiling_expand,
                      {.help = "Expand variables in the profiler's configuration", .hidden = true});
            flags.add(
                "profiling.ebpf.env-var", values->profiling_variables,
                {.help = "Profile only processes with this environment variable", .hidden = true});
            flags.add("profiling.ebpf.self-profiler", values->profiling_self,
                      {.help = "Profile the exporter", .hidden = true});
          },
      .create = [values](const CollectorContext&, const host::CgroupMount&,
                         UnitSource&) -> Result<std::unique_ptr<SubCollector>> {
        warn(*values);
        return nullptr;
      }};
}

}  // namespace ceems::exporter
