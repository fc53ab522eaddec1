#include "exporter/perf/profiler.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/strings.h"
#include "host/cpu_topology.h"
#include "host/read_file.h"

namespace ceems::exporter::perf {
namespace {

std::optional<host::ProcessOrigin> facts_of(const std::filesystem::path& proc, int pid) {
  constexpr std::size_t kMaxText = 4096;
  const auto text = host::read_file((proc / std::to_string(pid) / "stat").string(), kMaxText);
  return text ? host::parse_process_origin(*text) : std::nullopt;
}

/// Opens a counter for each thread and event. kNoData: the process is gone.
Result<std::vector<Counter>> open_threads(CounterPool& pool,
                                          const std::filesystem::path& proc,
                                          int pid) {
  const auto threads = host::list_directory((proc / std::to_string(pid) / "task").string());
  if (!threads) {
    return fail(ErrorCode::kNoData, "process {} is gone", pid);
  }
  std::vector<Counter> counters;
  for (const std::string& name : *threads) {
    const auto thread = parse_int<int>(name);
    if (!thread) {
      continue;
    }
    auto opened = pool.open({.thread = *thread}, counters);
    if (!opened && opened.error().code != ErrorCode::kNoData) {
      return fail(std::move(opened).error());
    }
  }
  if (counters.empty()) {
    return fail(ErrorCode::kNoData, "process {} is gone", pid);
  }
  return counters;
}

std::vector<int> online_cpus(const host::Paths& paths) {
  const auto text = host::read_file((paths.sys / "devices/system/cpu/online").string());
  const auto cpus = text ? host::parse_cpu_list(*text) : std::nullopt;
  return cpus.value_or(std::vector<int>());
}

}  // namespace

Counter::Counter(Counter&& other) noexcept
    : pool_(other.pool_),
      handle_(std::exchange(other.handle_, -1)),
      event_(other.event_),
      last_(other.last_) {}

Counter& Counter::operator=(Counter&& other) noexcept {
  if (this != &other) {
    close();
    pool_ = other.pool_;
    handle_ = std::exchange(other.handle_, -1);
    event_ = other.event_;
    last_ = other.last_;
  }
  return *this;
}

void Counter::close() {
  if (handle_ >= 0) {
    pool_->kernel_.close(std::exchange(handle_, -1));
    ++pool_->left_;
  }
}

void Counter::add_to(Totals& totals) {
  if (const auto now = pool_->kernel_.read(handle_)) {
    totals[event_] += growth(last_, *now);
    last_ = *now;
  }
}

Result<> CounterPool::open(const Target& target, std::vector<Counter>& counters) {
  const auto before = static_cast<std::ptrdiff_t>(counters.size());
  const auto give_up = [&](Error error) -> Result<> {
    counters.erase(counters.begin() + before, counters.end());
    return fail(std::move(error));
  };
  Error refused{ErrorCode::kNotFound, "this machine has none of the events"};
  for (const std::size_t event : events_) {
    if (unsupported_[event]) {
      continue;
    }
    if (left_ == 0) {
      return give_up({ErrorCode::kUnavailable, "the limit of open counters is reached"});
    }
    auto handle = kernel_.open(all_events()[event], target, exclude_kernel_);
    if (handle) {
      --left_;
      counters.emplace_back(*this, *handle, event);
    } else if (handle.error().code == ErrorCode::kNotFound) {
      log_unsupported(event);
    } else if (handle.error().code == ErrorCode::kNoData ||
               handle.error().code == ErrorCode::kUnavailable) {
      return give_up(std::move(handle).error());
    } else {
      refused = std::move(handle).error();
    }
  }
  if (std::cmp_equal(counters.size(), before)) {
    return fail(std::move(refused));
  }
  return {};
}

void CounterPool::log_unsupported(std::size_t event) {
  unsupported_[event] = true;
  log::info("event is not supported by this machine",
            {{"collector", "perf"}, {"event", all_events()[event].profiler}});
}

std::size_t default_counter_limit() {
  constexpr rlim_t kMax = 65536;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) {
    return 0;
  }
  return static_cast<std::size_t>(std::min(files.rlim_cur / 8, kMax));
}

Result<CgroupCounters> CgroupCounters::open(CounterPool& pool,
                                            const UnitCountersOptions& options,
                                            const std::filesystem::path& directory) {
  if (!pool.fits(options.cpus.size())) {
    return fail(ErrorCode::kUnavailable, "a counter for each of {} CPUs exceeds the limit",
                options.cpus.size());
  }
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status{};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    return fail(errno_error(errno, "open " + directory.string()));
  }
  CgroupCounters opened;
  opened.inode_ = status.st_ino;
  for (const int cpu : options.cpus) {
    auto done = pool.open({.cgroup_fd = fd.get(), .cpu = cpu}, opened.counters_);
    if (!done && done.error().code != ErrorCode::kNoData) {  // a CPU that went offline
      return fail(std::move(done).error());
    }
  }
  if (opened.counters_.empty()) {
    return fail(ErrorCode::kNoData, "no counter for {}", directory.string());
  }
  return opened;
}

bool CgroupCounters::read(Totals& totals, const std::filesystem::path& directory) {
  for (Counter& counter : counters_) {
    counter.add_to(totals);
  }
  struct stat status{};
  return ::stat(directory.c_str(), &status) == 0 && status.st_ino == inode_;
}

std::optional<Error> ProcessCounters::update(CounterPool& pool,
                                             const UnitCountersOptions& options,
                                             std::span<const int> pids,
                                             Clock::SteadyTime now,
                                             Totals& totals) {
  ++updates_;
  std::vector<std::pair<host::ProcessOrigin, int>> fresh;
  for (const int pid : pids) {
    if (const auto member = members_.find(pid); member != members_.end()) {
      member->second.seen = updates_;
    } else if (!waits(pid, now)) {
      if (const auto facts = facts_of(options.proc, pid)) {
        fresh.emplace_back(*facts, pid);
      }
    }
  }
  // Parents before their children, so that the origin of each can be looked up.
  std::ranges::stable_sort(
      fresh, {}, [](const auto& one) { return std::pair(one.first.start_ticks, one.second); });
  for (const auto& [facts, pid] : fresh) {
    count_from_now(pool, options, pid, facts, now);
  }
  for (Family& family : families_) {
    for (Counter& counter : family.counters) {
      counter.add_to(totals);
    }
  }
  std::erase_if(members_, [this](auto& item) {
    const bool gone = item.second.seen != updates_;
    item.second.family->members -= gone ? 1U : 0U;
    return gone;
  });
  std::erase_if(sessions_, [](const auto& item) { return item.second->members == 0; });
  std::erase_if(families_, [](const Family& family) { return family.members == 0; });
  std::erase_if(failures_, [this](const auto& item) { return item.second.seen != updates_; });
  if (failures_.empty()) {
    return std::nullopt;
  }
  return failures_.begin()->second.error;
}

void ProcessCounters::join(int pid, int session, FamilyRef family) {
  if (members_.try_emplace(pid, Member{family, updates_}).second) {
    ++family->members;
  }
  sessions_.insert_or_assign(session, family);
}

bool ProcessCounters::waits(int pid, Clock::SteadyTime now) {
  const auto failed = failures_.find(pid);
  if (failed == failures_.end()) {
    return false;
  }
  failed->second.seen = updates_;
  return now < failed->second.next;
}

void ProcessCounters::count_from_now(CounterPool& pool,
                                     const UnitCountersOptions& options,
                                     int pid,
                                     const host::ProcessOrigin& facts,
                                     Clock::SteadyTime now) {
  if (members_.contains(pid)) {  // listed twice
    return;
  }
  const auto parent = members_.find(facts.parent);
  const auto session = sessions_.find(facts.session);
  if (parent != members_.end()) {
    if (facts.start_ticks >= parent->second.family->since) {
      join(pid, facts.session, parent->second.family);
      return;
    }
  } else if (session != sessions_.end() && facts.start_ticks >= session->second->since) {
    join(pid, facts.session, session->second);
    return;
  }
  const std::uint64_t since = options.boot_ticks();
  auto counters = open_threads(pool, options.proc, pid);
  if (counters) {
    failures_.erase(pid);
    families_.push_back({*std::move(counters), since, 0});
    join(pid, facts.session, std::prev(families_.end()));
    return;
  }
  if (counters.error().code == ErrorCode::kNoData) {
    failures_.erase(pid);
    return;
  }
  Failure& failure = failures_[pid];
  using Wait = Clock::SteadyTime::duration;
  failure.wait = failure.wait == Wait::zero() ? Wait(kFirstRetryPause)
                                              : std::min(failure.wait * 2, Wait(kMaxRetryPause));
  failure.next = now + failure.wait;
  failure.error = std::move(counters).error();
  failure.seen = updates_;
}

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
