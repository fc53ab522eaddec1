#include "exporter/profile/continuous.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::chrono::milliseconds kDrainEvery{200};
constexpr std::chrono::milliseconds kSharedAge{1000};
constexpr std::int64_t kMaxProcesses = 65'536;  // 8 MB in the kernel
constexpr std::string_view kSelf = "__internal_ceems_exporter";

SymbolizerOptions symbolizer_options(const SamplingConfig& config, DebugFileSource* debug_files) {
  return {.demangle = config.demangle,
          .processes = static_cast<std::size_t>(config.pid_cache_size),
          .python_functions = static_cast<std::size_t>(config.symbols_map_size),
          .binaries = {.by_build_id = static_cast<std::size_t>(config.build_id_cache_size),
                       .by_file = static_cast<std::size_t>(config.same_file_cache_size),
                       .rounds = static_cast<unsigned>(config.cache_rounds)},
          .debug_files = debug_files};
}

/// The number of this process in the pid namespace that `paths.proc` shows.
pid_t own_pid(const host::Paths& paths) {
  std::error_code error;
  const auto link = std::filesystem::read_symlink(paths.proc / "self", error);
  return parse_int<pid_t>(link.string()).value_or(::getpid());
}

}  // namespace

Result<std::unique_ptr<ContinuousProfiler>> ContinuousProfiler::create(ContinuousOptions options,
                                                                       UnitSource& source,
                                                                       const host::Paths& paths,
                                                                       const Clock& clock) {
  const SamplingConfig& sampling = options.config.sampling;
  CEEMS_TRY(sampler,
            StackSampler::create(
                {.rate = static_cast<unsigned>(sampling.sample_rate),
                 .user = sampling.collect_user_profile,
                 .kernel = sampling.collect_kernel_profile,
                 .python = sampling.python_enabled,
                 .by_unit = options.variables.empty(),
                 .processes = static_cast<unsigned>(std::min(sampling.pid_map_size, kMaxProcesses)),
                 .controller = std::string(source.controller())},
                paths));
  CEEMS_TRY(pusher, Pusher::create(options.config.push, clock));
  std::unique_ptr<Debuginfod> debuginfod;
  if (!options.config.debuginfod.urls.empty()) {
    CEEMS_TRY(made, Debuginfod::create(options.config.debuginfod, clock));
    debuginfod = std::move(made);
  }
  if (!options.variables.empty()) {
    source.want_processes();
  }
  return std::unique_ptr<ContinuousProfiler>(
      new ContinuousProfiler(std::move(options), source, paths, clock, std::move(sampler),
                             std::move(pusher), std::move(debuginfod)));
}

ContinuousProfiler::ContinuousProfiler(ContinuousOptions options,
                                       UnitSource& source,
                                       const host::Paths& paths,
                                       const Clock& clock,
                                       std::unique_ptr<StackSampler> sampler,
                                       std::unique_ptr<Pusher> pusher,
                                       std::unique_ptr<Debuginfod> debuginfod)
    : options_(std::move(options)),
      source_(source),
      paths_(paths),
      clock_(clock),
      filter_(paths.proc, std::string(source.manager()), options_.variables),
      sampler_(std::move(sampler)),
      pusher_(std::move(pusher)),
      debuginfod_(std::move(debuginfod)),
      symbolizer_(paths, symbolizer_options(options_.config.sampling, debuginfod_.get())),
      builder_(symbolizer_, nullptr, static_cast<unsigned>(options_.config.sampling.sample_rate)) {
  if (options_.config.sampling.collect_kernel_profile) {
    if (auto symbols = read_kernel_symbols(paths_)) {
      kernel_ = *std::move(symbols);
      builder_.name_kernel_by(*kernel_);
    } else {
      log::warn("profiler: functions of the kernel have no names",
                {{"err", symbols.error().message}});
    }
  }
}

void ContinuousProfiler::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

ProfilerCounters ContinuousProfiler::counters() const {
  const MutexLock lock(mutex_);
  ProfilerCounters counters = counters_;
  counters.push = pusher_->counters();
  return counters;
}

void ContinuousProfiler::run(const std::stop_token& stop) {
  const SamplingConfig& config = options_.config.sampling;
  begin_ = clock_.now();
  auto next_push = std::chrono::steady_clock::now() + config.collect_interval;
  auto next_discovery = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_discovery) {
      discover();
      next_discovery = now + config.discover_interval;
    }
    drain();
    if (now >= next_push) {
      push();
      next_push = now + config.collect_interval;
    }
    sleep_for(kDrainEvery, stop);
  }
}

/// Finds the units anew and lets their processes be sampled.
void ContinuousProfiler::discover() {
  const auto snapshot = source_.snapshot(kSharedAge);
  Result<> done;
  if (!snapshot) {
    done = fail(snapshot.error());
  } else {
    cgroups_.clear();
    std::vector<pid_t> processes;
    if (options_.self) {
      processes.push_back(own_pid(paths_));
    }
    for (const Unit& unit : (*snapshot)->units) {
      if (unit.ended || unit.cgroup_id == 0) {
        continue;
      }
      cgroups_.push_back(unit.cgroup_id);
      uuids_.insert_or_assign(unit.cgroup_id, unit.uuid);
      if (!filter_.empty()) {
        std::ranges::copy(filter_.keep(unit.pids), std::back_inserter(processes));
      }
    }
    done = sampler_->set_units(cgroups_);
    if (done) {
      done = sampler_->set_processes(processes);
    }
  }
  if (!done && !std::exchange(failing_, true)) {
    log::warn("profiler: units cannot be found anew, the ones before are sampled",
              {{"err", done.error().message}});
  } else if (done && std::exchange(failing_, false)) {
    log::info("profiler: units are found again");
  }
}

void ContinuousProfiler::drain() {
  std::uint64_t samples = 0;
  sampler_->drain([&](const Sample& sample) {
    ++samples;
    builder_.add(sample);
  });
  const std::uint64_t lost = sampler_->lost();
  const MutexLock lock(mutex_);
  counters_.samples += samples;
  counters_.lost = lost;
}

/// Empty if the process is in no unit.
std::string ContinuousProfiler::uuid_of(const ProfileOwner& owner) const {
  const auto unit = uuids_.find(owner.unit);
  if (owner.unit != 0 && unit != uuids_.end()) {
    return unit->second;
  }
  return owner.pid == own_pid(paths_) ? std::string(kSelf) : std::string();
}

void ContinuousProfiler::push() {
  const auto now = clock_.now();
  for (auto& [owner, profile] : builder_.take()) {
    const std::string uuid = uuid_of(owner);
    if (uuid.empty()) {
      continue;  // no user may see a profile of an unknown unit
    }
    profile.started = begin_;
    profile.duration = now - begin_;
    if (auto added =
            pusher_->add({.service_name = uuid, .pid = std::to_string(owner.pid)}, profile);
        !added) {
      log::debug("profiler: a profile is left out", {{"err", added.error().message}});
    }
  }
  begin_ = now;
  const std::set<std::uint64_t> living(cgroups_.begin(), cgroups_.end());
  std::erase_if(uuids_, [&living](const auto& unit) { return !living.contains(unit.first); });
  symbolizer_.next_round();
  sampler_->forget_ended();
}

}  // namespace ceems::exporter::profile
