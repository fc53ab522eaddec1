#include "exporter/run/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::exporter::run {
namespace {

constexpr std::size_t kMaxText = 4096;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const auto end = text.rfind(')');
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  constexpr std::size_t kFields = 22;  // from the state on
  std::array<std::uint64_t, kFields> fields{};
  std::string_view rest = text.substr(end + 1);
  const std::string_view state = take_word(rest);
  for (std::size_t i = 1; i < kFields; ++i) {
    const std::string_view word = take_word(rest);
    if (word.empty()) {
      return std::nullopt;
    }
    fields.at(i) = parse_int(word).value_or(0);  // some are negative
  }
  return ProcessStat{.ended = state == "Z" || state == "X",
                     .parent = static_cast<int>(std::min<std::uint64_t>(fields[1], 1U << 30U)),
                     .start_ticks = fields[19],
                     .user_ticks = fields[11] + fields[13],
                     .system_ticks = fields[12] + fields[14],
                     .resident_pages = fields[21]};
}

ProcessTree::ProcessTree(const std::filesystem::path& proc,
                         int self,
                         std::function<bool(int pid)> belongs)
    : proc_(proc),
      proc_fd_(::open(proc.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
      self_(self),
      belongs_(std::move(belongs)),
      tick_(1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK))),
      page_(static_cast<double>(::sysconf(_SC_PAGESIZE))) {}

ProcessTree::Times ProcessTree::times_of(const ProcessStat& stat) const {
  return {.user = static_cast<double>(stat.user_ticks) * tick_,
          .system = static_cast<double>(stat.system_ticks) * tick_};
}

Result<> ProcessTree::list() {
  pids_.clear();
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(proc_.c_str()), ::closedir);
  if (directory == nullptr) {
    return fail(ErrorCode::kUnavailable, "{}: {}", proc_.string(),
                std::generic_category().message(errno));
  }
  // Each thread has its own directory stream.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  while (const dirent* entry = ::readdir(directory.get())) {
    if (const auto pid = parse_int<int>(static_cast<const char*>(entry->d_name));
        pid && *pid > 0 && *pid != self_) {
      pids_.push_back(*pid);
    }
  }
  std::ranges::sort(pids_);
  return {};
}

std::optional<ProcessStat> ProcessTree::stat_of(int pid) {
  const std::string name = fmt::format("{}/stat", pid);
  if (!host::read_file_at(proc_fd_.get(), name.c_str(), buffer_, kMaxText)) {
    return std::nullopt;
  }
  return parse_process_stat(buffer_);
}

/// Memory that belongs to the process alone: resident pages that are of no file and not shared.
void ProcessTree::read_held(int pid, Member& member) {
  const std::uint64_t resident = member.stat.resident_pages;
  const std::uint64_t change =
      std::max(resident, member.held_at) - std::min(resident, member.held_at);
  constexpr std::uint64_t kHundredth = 100;
  if (change * kHundredth <= member.held_at) {
    return;
  }
  const std::string name = fmt::format("{}/statm", pid);
  if (!host::read_file_at(proc_fd_.get(), name.c_str(), buffer_, kMaxText)) {
    return;
  }
  std::string_view rest = buffer_;
  take_word(rest);
  const auto all = parse_int(take_word(rest)).value_or(0);
  const auto shared = parse_int(take_word(rest)).value_or(0);
  member.held_pages = all - std::min(all, shared);
  member.held_at = resident;
}

/// Processes that ended have added their time to a parent that waited for them. Where the uppermost
/// of them was the child of another process, it is added here.
void ProcessTree::keep_vanished(const std::unordered_map<int, Member>& before) {
  for (const auto& [pid, member] : before) {
    if (members_.contains(pid)) {
      continue;
    }
    int parent = member.stat.parent;
    for (auto up = before.find(parent); up != before.end() && !members_.contains(parent);
         up = before.find(parent)) {
      parent = up->second.stat.parent;
    }
    if (parent != self_ && !members_.contains(parent)) {
      const Times times = times_of(member.stat);
      gone_.user += times.user;
      gone_.system += times.system;
    }
  }
}

void ProcessTree::find_new(bool first) {
  struct Candidate {
    int pid = 0;
    ProcessStat stat;
    bool belongs = false;
  };
  std::vector<Candidate> candidates;
  for (const int pid : pids_) {
    if (members_.contains(pid) || others_.contains(pid) || left_out_.contains(pid)) {
      continue;
    }
    if (const auto stat = stat_of(pid)) {
      candidates.push_back({.pid = pid, .stat = *stat, .belongs = belongs_ && belongs_(pid)});
    }
  }
  std::unordered_set<int> own{self_};  // this process and its descendants, in the first read
  // Numbers of processes wrap, so a child may come before its parent.
  for (bool found = true; found;) {
    found = false;
    std::erase_if(candidates, [&](const Candidate& candidate) CEEMS_REQUIRES(mutex_) {
      const int parent = candidate.stat.parent;
      if (parent != self_ && !members_.contains(parent) && !candidate.belongs) {
        return false;
      }
      members_[candidate.pid] = {.stat = candidate.stat};
      if (own.contains(parent)) {
        own.insert(candidate.pid);
      } else if (first) {
        const Times times = times_of(candidate.stat);
        before_.user += times.user;
        before_.system += times.system;
      }
      found = true;
      return true;
    });
  }
  for (const Candidate& candidate : candidates) {
    // One that is still to execute its program has the environment of another one.
    if (!belongs_ || !seen_.insert(candidate.pid).second) {
      others_.insert(candidate.pid);
    }
  }
}

Result<TreeUse> ProcessTree::read() {
  const MutexLock lock(mutex_);
  CEEMS_TRY(list());
  std::unordered_map<int, Member> before = std::exchange(members_, {});
  // Parents have started before their children, so they are read first: a child that ends between
  // the two readings is then missing in this sum, but never in it twice.
  std::vector<std::pair<std::uint64_t, int>> order;
  order.reserve(before.size());
  for (const auto& [pid, member] : before) {
    order.emplace_back(member.stat.start_ticks, pid);
  }
  std::ranges::sort(order);
  for (const auto& [start, pid] : order) {
    const auto stat = stat_of(pid);
    if (stat && stat->start_ticks == start) {
      Member& member = members_[pid] = before.at(pid);
      member.stat = *stat;
    }
  }
  const auto is_gone = [this](int pid) CEEMS_REQUIRES(mutex_) {
    return !std::ranges::binary_search(pids_, pid);
  };
  std::erase_if(others_, is_gone);
  std::erase_if(seen_, is_gone);
  keep_vanished(before);
  find_new(!std::exchange(begun_, true));

  TreeUse use;
  Times sum = gone_;
  for (auto& [pid, member] : members_) {
    const Times times = times_of(member.stat);
    sum.user += times.user;
    sum.system += times.system;
    read_held(pid, member);
    use.memory_held_bytes +=
        static_cast<std::uint64_t>(static_cast<double>(member.held_pages) * page_);
    use.pids.push_back(pid);
  }
  std::ranges::sort(use.pids);
  most_.user = std::max(most_.user, sum.user - before_.user);
  most_.system = std::max(most_.system, sum.system - before_.system);
  use.user_seconds = most_.user;
  use.system_seconds = most_.system;
  return use;
}

void ProcessTree::leave_out(int pid) {
  const MutexLock lock(mutex_);
  left_out_.insert(pid);
}

bool ProcessTree::reap(const std::function<void(int pid, int status)>& ended) {
  while (true) {
    int status = 0;
    rusage usage{};
    // Under the lock, so that no read sees a process that has ended and also its time here.
    const MutexLock lock(mutex_);
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) {
      return pid == 0 || errno != ECHILD;
    }
    if (!left_out_.contains(pid)) {
      gone_.user += seconds_of(usage.ru_utime);
      gone_.system += seconds_of(usage.ru_stime);
    }
    ended(pid, status);
  }
}

void ProcessTree::add_reaped(double user_seconds, double system_seconds) {
  const MutexLock lock(mutex_);
  gone_.user += user_seconds;
  gone_.system += system_seconds;
}

}  // namespace ceems::exporter::run
