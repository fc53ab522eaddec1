#include "exporter/perf/unit_counters.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/strings.h"
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

}  // namespace

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

}  // namespace ceems::exporter::perf
