#include "exporter/perf/profiler.h"

#include <time.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "host/cpu_topology.h"
#include "host/read_file.h"

namespace ceems::exporter::perf {
namespace {

std::vector<int> online_cpus(const host::Paths& paths) {
  const auto text = host::read_file((paths.sys / "devices/system/cpu/online").string());
  const auto cpus = text ? host::parse_cpu_list(*text) : std::nullopt;
  return cpus.value_or(std::vector<int>());
}

}  // namespace

std::uint64_t boot_ticks() {
  constexpr std::uint64_t kPerSecond = 100;
  constexpr std::uint64_t kNanoseconds = 10'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kPerSecond +
         static_cast<std::uint64_t>(now.tv_nsec) / kNanoseconds;
}

Profiler::Profiler(ProfilerOptions options, Kernel& kernel, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      shared_{options_.paths.proc, online_cpus(options_.paths), options_.boot_ticks},
      pool_(kernel, options_.events, options_.exclude_kernel, options_.max_counters),
      by_cgroup_(options_.filter.empty() && !shared_.cpus.empty()) {}

void Profiler::update(const UnitSnapshot& snapshot) {
  failure_.reset();
  for (auto& [key, state] : states_) {
    state.seen = false;
  }
  std::set<std::string> uuids;
  for (const Unit& unit : snapshot.units) {
    if (!unit.ended) {
      State& state = states_[{unit.cgrouphostname, unit.uuid}];
      state.seen = true;
      Totals& totals = totals_[unit.uuid];
      totals.resize(all_events().size());
      uuids.insert(unit.uuid);
      update_unit(unit, state, totals);
    }
  }
  std::erase_if(states_, [](const auto& item) { return !item.second.seen; });
  std::erase_if(totals_, [&](const auto& item) { return !uuids.contains(item.first); });
  report(std::move(failure_));
}

std::filesystem::path Profiler::directory(const Unit& unit) const {
  std::filesystem::path root = options_.paths.cgroup;
  if (options_.mode == host::CgroupMode::kLegacy) {
    root /= "perf_event";
  }
  return root.concat(unit.path);
}

void Profiler::update_unit(const Unit& unit, State& state, Totals& totals) {
  if (!state.processes && count_cgroup(unit, state, totals)) {
    return;
  }
  count_processes(options_.filter.keep(unit.pids), state, totals);
}

bool Profiler::count_cgroup(const Unit& unit, State& state, Totals& totals) {
  const std::filesystem::path path = directory(unit);
  if (state.cgroup && state.cgroup->read(totals, path)) {
    return true;
  }
  const bool had_one = state.cgroup.has_value();
  state.cgroup.reset();
  if (!by_cgroup_) {
    return false;
  }
  auto opened = CgroupCounters::open(pool_, shared_, path);
  if (opened) {
    state.cgroup = *std::move(opened);
    state.cgroup->read(totals, path);
    return true;
  }
  const Error& error = opened.error();
  if (error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kPermissionDenied) {
    by_cgroup_ = false;
    log::info("events are counted by process, not by cgroup",
              {{"collector", "perf"}, {"err", error.message}});
    return false;
  }
  // A unit that is vanishing needs no other kind of counters. With v1 it may not have a cgroup for
  // perf events.
  return error.code == ErrorCode::kNoData ||
         (error.code == ErrorCode::kNotFound &&
          (had_one || options_.mode == host::CgroupMode::kUnified));
}

void Profiler::count_processes(std::vector<int> pids, State& state, Totals& totals) {
  if (!processes_requested_) {
    processes_requested_ = true;
    options_.want_processes();
  }
  if (!state.processes) {
    state.processes.emplace();
  }
  auto failure = state.processes->update(pool_, shared_, pids, clock_.steady_now(), totals);
  if (failure && !failure_) {
    failure_ = std::move(failure);
  }
}

void Profiler::report(std::optional<Error> failure) {
  if (failure.has_value() == failing_) {
    return;
  }
  failing_ = failure.has_value();
  if (failing_) {
    log::warn("events of some processes are not counted; retrying periodically",
              {{"collector", "perf"}, {"err", failure->message}});
  } else {
    log::info("events of all processes are counted again", {{"collector", "perf"}});
  }
}

}  // namespace ceems::exporter::perf
