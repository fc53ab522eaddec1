#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"
#include "exporter/collector.h"
#include "host/proc.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

using Field = std::uint64_t host::CpuTimes::*;
constexpr std::array<std::pair<std::string_view, Field>, 8> kModes{{
    {"user", &host::CpuTimes::user},
    {"nice", &host::CpuTimes::nice},
    {"system", &host::CpuTimes::system},
    {"idle", &host::CpuTimes::idle},
    {"iowait", &host::CpuTimes::iowait},
    {"irq", &host::CpuTimes::irq},
    {"softirq", &host::CpuTimes::softirq},
    {"steal", &host::CpuTimes::steal},
}};
constexpr double kTicksPerSecond = 100;  // USER_HZ, the same on every architecture of Linux
constexpr std::uint64_t kHotplugTicks = 300;
constexpr std::size_t kTestCores = 4;  // --collector.empty-hostname-label, as in the reference

const metrics::Desc kCount{
    "ceems_cpu_count", "Number of logical CPUs online.", metrics::Type::kGauge, {"hostname"}};
const metrics::Desc kPerCore{"ceems_cpu_per_core_count",
                             "Number of logical CPUs per physical core.",
                             metrics::Type::kGauge,
                             {"hostname"}};
const metrics::Desc kSeconds{"ceems_cpu_seconds_total",
                             "Seconds that the CPUs spent in each mode.",
                             metrics::Type::kCounter,
                             {"hostname", "mode"}};

/// CPU times that never decrease, from readings that may: iowait and steal jitter downwards, and
/// all fields restart when CPUs are unplugged and plugged in again. Not thread-safe.
class CpuCounter {
 public:
  /// Takes a reading and returns the times to export. If idle falls by 3 s or more, CPUs were
  /// hot-plugged and the new reading is used unchanged. Otherwise each field keeps its highest
  /// value.
  const host::CpuTimes& update(const host::CpuTimes& reading) {
    if (times_.idle >= reading.idle + kHotplugTicks) {
      log::debug("CPU times restarted, assuming a hotplug", {{"collector", "cpu"}});
      times_ = reading;
      return times_;
    }
    for (const auto& [mode, field] : kModes) {
      times_.*field = std::max(times_.*field, reading.*field);
    }
    return times_;
  }

 private:
  host::CpuTimes times_;
};

class CpuCollector final : public Collector {
 public:
  CpuCollector(const CollectorContext& context, std::size_t cpus_per_core)
      : path_(context.paths.proc / "stat"),
        hostname_(context.hostname),
        cpus_per_core_(static_cast<double>(cpus_per_core)) {}

  Result<> collect(metrics::Sink& sink) override {
    CEEMS_TRY(host::read_file(path_.c_str(), buffer_));
    CEEMS_TRY_IN(path_, stat, host::parse_stat(buffer_));
    sink.add(kCount, static_cast<double>(stat.cpus), {hostname_});
    sink.add(kPerCore, cpus_per_core_, {hostname_});
    const host::CpuTimes& times = counter_.update(stat.total);
    for (const auto& [mode, field] : kModes) {
      sink.add(kSeconds, static_cast<double>(times.*field) / kTicksPerSecond, {hostname_, mode});
    }
    return {};
  }

 private:
  std::string path_;
  std::string hostname_;
  double cpus_per_core_;
  CpuCounter counter_;
  std::string buffer_;
};

Result<std::unique_ptr<Collector>> create_cpu(const CollectorContext& context,
                                              const Sources& /*sources*/) {
  const std::string proc = context.paths.proc;
  if (!host::is_directory(proc)) {
    return fail(ErrorCode::kInvalidArgument, "--path.procfs: {} is not a directory", proc);
  }
  const std::string path = context.paths.proc / "cpuinfo";
  CEEMS_TRY(text, host::read_file(path));
  CEEMS_TRY_IN(path, info, host::parse_cpuinfo(text));
  const std::size_t cores = context.hostname_emptied ? kTestCores : info.physical_cores;
  const std::size_t cpus_per_core =
      cores == 0 ? 1 : std::max<std::size_t>(info.processors / cores, 1);
  return std::make_unique<CpuCollector>(context, cpus_per_core);
}

}  // namespace

/// --collector.cpu: ceems_cpu_count, ceems_cpu_per_core_count, ceems_cpu_seconds_total.
CollectorSpec cpu_collector() {
  return {.name = "cpu",
          .help = "Enable the cpu collector (CPU times of the node)",
          .enabled_by_default = true,
          .create = create_cpu};
}

}  // namespace ceems::exporter
