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

RegionSummary summary_of(const marks::UnitMarks::Region& region) {
  RegionSummary summary{.name = region.name, .seconds = region.seconds, .count = region.count};
  if (region.has_energy()) {
    summary.joules = marks::sum(region.energy().joules);
    summary.self_joules = region.energy().self;
  }
  return summary;
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
                   std::shared_ptr<marks::Ledger> marks,
                   std::chrono::milliseconds interval,
                   const Clock& clock)
    : source_(std::move(source)),
      marks_(std::move(marks)),
      interval_(interval),
      clock_(clock),
      labels_(label("hostname", begin.node) + "," + label("uuid", begin.job)),
      summary_(std::move(begin)) {
  summary_.unit = source_->has_cgroup() ? "cgroup" : "processes";
  summary_.cpus = source_->cpus();
}

void Recorder::take(const Account& account, Clock::SteadyTime time) {
  const UnitStats stats = source_->last();
  if (marks_ != nullptr) {
    marks_->advance(account, time);
  }
  const MutexLock lock(mutex_);
  summary_.end_ms = std::max(clock_.now_ms(), summary_.begin_ms);
  const auto step = last_ ? time - *last_ : Clock::SteadyTime::duration{};
  const double seconds = std::chrono::duration<double>(step).count();
  summary_.seconds += seconds;
  summary_.gaps += step > 3 * interval_ ? 1U : 0U;
  last_ = time;
  summary_.cpu_seconds = stats.cpu_user_seconds + stats.cpu_system_seconds;
  if (!stats.memory_reserved || stats.memory_total_bytes <= 0) {
    summary_.memory_limit_bytes.reset();
  } else {
    summary_.memory_limit_bytes = stats.memory_total_bytes;
  }
  summary_.method = methods_of(account);
  take_use(account);
  take_marks(seconds);
  if (summary_.samples++ % stride_ == 0) {
    add_lines(stats);
  }
}

void Recorder::take_use(const Account& account) {
  const auto units = account.units();
  if (units.empty()) {
    return;
  }
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

/// `seconds`: since the last sample.
void Recorder::take_marks(double seconds) {
  if (marks_ == nullptr) {
    return;
  }
  marks_->read([&](const marks::Ledger::View& view) CEEMS_REQUIRES(mutex_) {
    if (view.units.empty()) {
      return;
    }
    const marks::UnitMarks& unit = view.units.front()->marks;
    summary_.regions.clear();
    for (const marks::UnitMarks::Region& region : unit.regions()) {
      summary_.regions.push_back(summary_of(region));
    }
    summary_.results.clear();
    for (const marks::UnitMarks::Result& result : unit.results()) {
      summary_.results.push_back(
          {.name = result.name, .measure = result.measure, .total = result.total});
    }
    summary_.foms.resize(unit.foms().size());  // new ones are added at the end
    for (std::size_t i = 0; i < unit.foms().size(); ++i) {
      const marks::UnitMarks::Fom& fom = unit.foms()[i];
      FomSummary& known = summary_.foms[i];
      const double before = known.seconds * known.mean;
      known.seconds += seconds;
      known = {
          .name = fom.name,
          .measure = fom.measure,
          .last = fom.value,
          .mean = known.seconds > 0 ? (before + seconds * fom.value) / known.seconds : fom.value,
          .seconds = known.seconds};
    }
  });
}

void Recorder::add_line(std::string_view name, double value, const std::string& labels) {
  fmt::format_to(std::back_inserter(lines_), "ceems_compute_unit_{}{{{}{}{}}} {} {}\n", name,
                 labels_, labels.empty() ? "" : ",", labels, value, summary_.end_ms);
}

void Recorder::add_lines(const UnitStats& stats) {
  if (lines_.size() > kMaxLines) {
    return;
  }
  add_line("cpu_user_seconds_total", stats.cpu_user_seconds);
  add_line("cpu_system_seconds_total", stats.cpu_system_seconds);
  add_line("memory_rss_bytes", static_cast<double>(stats.memory_rss_bytes));
  for (const auto& [domain, joules] : summary_.energy_joules) {
    add_line("energy_joules_total", joules, label("domain", domain));
  }
  for (const GpuSummary& gpu : summary_.gpus) {
    const std::string labels = label("gpuuuid", gpu.uuid) + "," + label("index", gpu.index);
    if (gpu.busy_seconds) {
      add_line("gpu_busy_seconds_total", *gpu.busy_seconds, labels);
    }
    if (gpu.sm_seconds) {
      add_line("gpu_sm_seconds_total", *gpu.sm_seconds, labels);
    }
  }
  add_lines_of_marks();
}

void Recorder::add_lines_of_marks() {
  for (const RegionSummary& region : summary_.regions) {
    const std::string labels = label("region", region.name);
    add_line("region_seconds_total", region.seconds, labels);
    add_line("region_count_total", static_cast<double>(region.count), labels);
    if (region.joules) {
      add_line("region_energy_joules_total", *region.joules,
               labels + "," + label("domain", "node"));
      add_line("region_self_energy_joules_total", region.self_joules.value_or(0), labels);
    }
  }
  for (const ResultSummary& result : summary_.results) {
    add_line("results_total", result.total,
             label("result", result.name) + "," + label("unit", result.measure));
  }
  for (const FomSummary& fom : summary_.foms) {
    add_line("fom", fom.last, label("fom", fom.name) + "," + label("unit", fom.measure));
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

void Recorder::set_placement(std::string text, std::vector<std::string> faults) {
  const MutexLock lock(mutex_);
  summary_.placement = std::move(text);
  summary_.placement_faults = std::move(faults);
}

void Recorder::end(std::optional<int> exit_status) {
  const MutexLock lock(mutex_);
  summary_.ended = true;
  summary_.exit_status = exit_status;
  summary_.end_ms = std::max(clock_.now_ms(), summary_.begin_ms);
}

}  // namespace ceems::exporter::run
