#include "exporter/run/recorder.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"

namespace ceems::exporter::run {
namespace {

using energy::Account;
using energy::Domain;
using energy::Method;

/// Lines that are not taken, because the disk hangs, are dropped beyond this.
constexpr std::size_t kMaxLines = std::size_t{16} << 20U;
constexpr std::size_t kMaxGpus = 256;

/// A label in the text format of Prometheus, whose escapes are a part of JSON's.
std::string label(std::string_view name, std::string_view value) {
  std::string text(name);
  text += "=\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text += '\\';
    }
    text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return text + '"';
}

/// Keeps the method of the domain that says least about what was measured.
void note(std::map<std::string, std::string>& methods, Domain domain, Method method) {
  std::string& known = methods[std::string(energy::to_string(domain))];
  if (known.empty() || method == Method::kModelled) {
    known = energy::to_string(method);
  }
}

GpuSummary summary_of(const energy::GpuUse& use) {
  return {.uuid = use.device + (use.instance.empty() ? "" : "/" + use.instance),
          .index = use.index,
          .busy_seconds = use.busy_seconds,
          .sm_seconds = use.sm_seconds,
          .memory_peak_bytes = use.memory_peak_bytes};
}

}  // namespace

std::map<std::string, std::string> methods_of(const Account& account) {
  std::map<std::string, std::string> methods;
  for (const energy::SourceAccount& source : account.sources()) {
    const bool is_node = source.info.domain == Domain::kNode;
    if (source.info.name == "sum" || !(source.joules.value() > 0)) {
      continue;
    }
    if (!is_node) {
      note(methods, source.info.domain, source.info.method);
    } else if (source.info.method == Method::kModelled || account.known(Domain::kOther)) {
      note(methods, Domain::kOther,
           source.info.method == Method::kModelled ? Method::kModelled : Method::kDerived);
    }
  }
  for (const energy::SourceAccount& source : account.device_sources()) {
    note(methods, Domain::kGpu, source.info.method);
  }
  return methods;
}

Recorder::Recorder(NodeSummary begin,
                   std::shared_ptr<const JobSource> source,
                   std::chrono::milliseconds interval,
                   const Clock& clock)
    : source_(std::move(source)),
      interval_(interval),
      clock_(clock),
      labels_(label("hostname", begin.node) + "," + label("uuid", begin.job)),
      summary_(std::move(begin)) {
  summary_.unit = source_->has_cgroup() ? "cgroup" : "processes";
  summary_.cpus = source_->cpus();
}

void Recorder::take(const Account& account, Clock::SteadyTime time) {
  const UnitStats stats = source_->last();
  const auto units = account.units();
  const MutexLock lock(mutex_);
  summary_.end_ms = std::max(clock_.now_ms(), summary_.begin_ms);
  if (last_) {
    const auto step = time - *last_;
    summary_.seconds += std::chrono::duration<double>(step).count();
    summary_.gaps += step > 3 * interval_ ? 1U : 0U;
  }
  last_ = time;
  summary_.cpu_seconds = stats.cpu_user_seconds + stats.cpu_system_seconds;
  if (!stats.memory_reserved || stats.memory_total_bytes <= 0) {
    summary_.memory_limit_bytes.reset();
  } else {
    summary_.memory_limit_bytes = stats.memory_total_bytes;
  }
  summary_.method = methods_of(account);
  if (!units.empty()) {
    const energy::UnitEntry& unit = *units.front();
    for (const Domain domain : energy::kDomains) {
      if (domain == Domain::kNode || !account.known(domain)) {
        continue;
      }
      const std::string name(energy::to_string(domain));
      summary_.energy_joules[name] = unit.joules(domain);
      summary_.idle_energy_joules[name] = unit.idle_joules(domain);
    }
    summary_.cpu_max = unit.use.cpu_max();
    summary_.memory_peak_bytes = unit.use.memory_peak_bytes();
    summary_.gpus.clear();
    for (const energy::GpuUse& use : unit.use.gpus()) {
      if (summary_.gpus.size() < kMaxGpus) {
        summary_.gpus.push_back(summary_of(use));
      }
    }
  }
  if (summary_.samples++ % stride_ == 0) {
    add_lines(stats);
  }
}

void Recorder::add_lines(const UnitStats& stats) {
  if (lines_.size() > kMaxLines) {
    return;
  }
  const auto add = [this](std::string_view name, double value,
                          const std::string& more = {}) CEEMS_REQUIRES(mutex_) {
    fmt::format_to(std::back_inserter(lines_), "ceems_compute_unit_{}{{{}{}{}}} {} {}\n", name,
                   labels_, more.empty() ? "" : ",", more, value, summary_.end_ms);
  };
  add("cpu_user_seconds_total", stats.cpu_user_seconds);
  add("cpu_system_seconds_total", stats.cpu_system_seconds);
  add("memory_rss_bytes", static_cast<double>(stats.memory_rss_bytes));
  for (const auto& [domain, joules] : summary_.energy_joules) {
    add("energy_joules_total", joules, label("domain", domain));
  }
  for (const GpuSummary& gpu : summary_.gpus) {
    const std::string labels = label("gpuuuid", gpu.uuid) + "," + label("index", gpu.index);
    if (gpu.busy_seconds) {
      add("gpu_busy_seconds_total", *gpu.busy_seconds, labels);
    }
    if (gpu.sm_seconds) {
      add("gpu_sm_seconds_total", *gpu.sm_seconds, labels);
    }
  }
}

Recorder::Part Recorder::take_part() {
  const MutexLock lock(mutex_);
  return {.lines = std::exchange(lines_, {}), .summary = summary_};
}

void Recorder::set_stride(std::uint64_t stride) {
  const MutexLock lock(mutex_);
  stride_ = std::max<std::uint64_t>(stride, 1);
}

void Recorder::end(std::optional<int> exit_status) {
  const MutexLock lock(mutex_);
  summary_.ended = true;
  summary_.exit_status = exit_status;
  summary_.end_ms = std::max(clock_.now_ms(), summary_.begin_ms);
}

}  // namespace ceems::exporter::run
