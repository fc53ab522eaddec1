#include "tool/validate/real_node.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/strings.h"
#include "exporter/energy/meter/power_model.h"
#include "host/cpu_topology.h"
#include "host/proc.h"
#include "host/read_file.h"

namespace ceems::tool::validate {
namespace {

constexpr double kMeterPeriod = 1;  // seconds between two readings
constexpr int kMaxFailures = 3;     // before the first reading; a busy BMC refuses now and then
constexpr double kMilli = 1e-3;
constexpr double kGib = 1073741824.0;
constexpr std::size_t kMaxCpusOfSet = 1U << 16U;

/// The CPUs that this process may use.
std::vector<bool> allowed_cpus(std::size_t count) {
  std::vector<bool> allowed(count, true);
  cpu_set_t* set = CPU_ALLOC(kMaxCpusOfSet);
  const std::size_t size = CPU_ALLOC_SIZE(kMaxCpusOfSet);
  CPU_ZERO_S(size, set);
  if (::sched_getaffinity(0, size, set) == 0) {
    for (std::size_t cpu = 0; cpu < count; ++cpu) {
      allowed[cpu] = CPU_ISSET_S(cpu, size, set) != 0;
    }
  }
  CPU_FREE(set);
  return allowed;
}

/// "6.1.0" of "6.1.0-18-amd64": what follows may name a site.
std::string kernel_release() {
  utsname names{};
  ::uname(&names);
  const std::string release = static_cast<const char*>(names.release);
  return release.substr(0, release.find_first_not_of("0123456789."));
}

std::string family_of(const exporter::energy::CpuIdentity& cpu) {
  const auto table = exporter::energy::parse_power_table(exporter::energy::kCpusCsv);
  const auto* power = table ? exporter::energy::find_power(*table, cpu) : nullptr;
  return power == nullptr ? std::string("Unknown CPU") : std::string(power->name);
}

double memory_gib(const std::string& text) {
  std::vector<host::MeminfoLine> lines;
  if (!host::parse_meminfo(text, lines)) {
    return 0;
  }
  const auto total = std::ranges::find(lines, "MemTotal", &host::MeminfoLine::key);
  return total == lines.end() ? 0 : std::round(static_cast<double>(total->value) / kGib);
}

}  // namespace

RealNode::RealNode(std::string url,
                   std::unique_ptr<net::Client> client,
                   std::unique_ptr<ReferenceMeter> meter,
                   std::vector<std::string> cgroup_roots,
                   Sleep sleep,
                   host::Paths paths)
    : url_(std::move(url)),
      client_(std::move(client)),
      meter_(std::move(meter)),
      cgroup_roots_(std::move(cgroup_roots)),
      sleep_(std::move(sleep)),
      paths_(std::move(paths)),
      processes_(paths_.proc.string(), static_cast<double>(::sysconf(_SC_CLK_TCK))) {}

double RealNode::now() {
  return kMilli * static_cast<double>(real_clock().now_ms());
}

Result<> RealNode::wait(double seconds) {
  const double end = now() + seconds;
  double begin = now();
  while (begin < end) {
    CEEMS_TRY(read_meter());
    const double left = std::min(end, begin + kMeterPeriod) - now();
    if (!sleep_(std::max(0.0, left))) {
      return fail(ErrorCode::kUnavailable, "interrupted; nothing was written");
    }
    begin = now();
  }
  return {};
}

Result<> RealNode::read_meter() {
  const auto read = meter_->read();
  if (!read) {
    const bool given_up = readings_.empty() && ++failures_ >= kMaxFailures;
    return given_up ? fail(Error(read.error()).with_context("the meter")) : Result<>();
  }
  if (const std::optional<double>& watts = *read) {
    readings_.push_back({.time = now(), .watts = *watts});
  }
  return {};
}

Result<ExporterPage> RealNode::page() {
  CEEMS_TRY_IN("the exporter", answer, client_->get(url_));
  if (answer.status != 200) {
    return fail(ErrorCode::kUnavailable, "the exporter: HTTP status {}", answer.status);
  }
  CEEMS_TRY_IN("the exporter", page, parse_exporter_page(answer.body));
  return page;
}

Result<CpuUse> RealNode::cpu_use() {
  CEEMS_TRY(text, host::read_file((paths_.proc / "stat").string()));
  CEEMS_TRY(stat, host::parse_stat(text));
  return CpuUse{.busy = static_cast<double>(host::busy_ticks(stat.total)),
                .all = static_cast<double>(host::all_ticks(stat.total))};
}

Result<> RealNode::start(const std::string& uuid, const Assignment& load) {
  CEEMS_TRY(process, LoadProcess::start(cgroup_roots_, uuid, load));
  loads_.emplace(uuid, std::move(process));
  return {};
}

Result<> RealNode::stop(const std::string& uuid) {
  const auto load = loads_.find(uuid);
  if (load == loads_.end()) {
    return {};
  }
  const bool ended = load->second.ended();
  loads_.erase(load);
  if (ended) {
    return fail(ErrorCode::kUnavailable,
                "the load {} ended early: the kernel log says why, such as too little memory",
                uuid);
  }
  return {};
}

Result<std::vector<WattReading>> RealNode::readings() {
  CEEMS_TRY(late, meter_->late());
  readings_.insert(readings_.end(), late.begin(), late.end());
  std::ranges::stable_sort(readings_, {}, &WattReading::time);
  return readings_;
}

std::string RealNode::busiest() {
  const double last = std::exchange(processes_read_, now());
  const std::string text = processes_.since_last(processes_read_ - last);
  return text.empty() ? "by no process that lasted" : text;
}

NodeKind kind_of_node(const host::Paths& paths) {
  const std::string cpuinfo =
      host::read_file((paths.proc / "cpuinfo").string()).value_or(std::string());
  const auto identity = exporter::energy::parse_cpu_identity(cpuinfo);
  const auto info = host::parse_cpuinfo(cpuinfo);
  const auto topology = host::read_cpu_topology(paths);
  NodeKind node;
  node.cpu_family = family_of(identity);
  node.cpu = info && !info->model_name.empty() ? printable(info->model_name) : node.cpu_family;
  node.sockets = static_cast<int>(std::max<std::size_t>(1, topology.packages.size()));
  node.cores = static_cast<int>(std::max<std::size_t>(1, topology.cores));
  if (const auto text = host::read_file((paths.proc / "stat").string())) {
    const auto stat = host::parse_stat(*text);
    node.cpus = stat ? static_cast<int>(std::max<std::size_t>(1, stat->cpus)) : 1;
  }
  node.memory_gib =
      memory_gib(host::read_file((paths.proc / "meminfo").string()).value_or(std::string()));
  node.virtual_machine = identity.hypervisor;
  node.kernel = kernel_release();
  return node;
}

std::vector<std::vector<int>> usable_cores(const host::Paths& paths) {
  const auto topology = host::read_cpu_topology(paths);
  const std::vector<bool> allowed = allowed_cpus(topology.cpus.size());
  std::map<int, std::vector<int>> by_core;
  for (std::size_t cpu = 0; cpu < topology.cpus.size(); ++cpu) {
    if (topology.cpus[cpu].core >= 0 && allowed[cpu]) {
      by_core[topology.cpus[cpu].core].push_back(static_cast<int>(cpu));
    }
  }
  std::vector<std::vector<int>> cores;
  cores.reserve(by_core.size());
  for (auto& [core, cpus] : by_core) {
    cores.push_back(std::move(cpus));
  }
  return cores;
}

}  // namespace ceems::tool::validate
