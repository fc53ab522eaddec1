#include "exporter/run/watch.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/strings.h"
#include "exporter/run/child.h"
#include "exporter/run/job_processes.h"
#include "exporter/run/process_tree.h"
#include "host/read_file.h"

namespace ceems::exporter::run {
namespace {

constexpr std::string_view kJobPrefix = "job:";

host::Paths paths_of(const Options& options) {
  return {.proc = options.proc, .sys = options.sys, .cgroup = options.cgroup};
}

/// When the process started; nothing if it has ended.
std::optional<std::uint64_t> start_of(const host::Paths& paths, int pid) {
  const auto text = host::read_file((paths.proc / std::to_string(pid) / "stat").string());
  const auto stat = text ? parse_process_stat(*text) : std::nullopt;
  return stat && !stat->ended ? std::optional(stat->start_ticks) : std::nullopt;
}

/// A process, or all of a job, that may have ended when it is asked.
class Watched {
 public:
  Watched(host::Paths paths, Job job) : paths_(std::move(paths)), job_(std::move(job)) {
    remember(job_.watched > 0 ? std::vector<int>{job_.watched} : job_.members);
  }
  [[nodiscard]] const Job& job() const { return job_; }
  [[nodiscard]] std::string program() const {
    const int pid = job_.watched > 0 ? job_.watched : job_.members.front();
    const auto name = host::read_file((paths_.proc / std::to_string(pid) / "comm").string());
    return std::string(name ? trim(*name) : std::string_view());
  }
  bool lives() {
    std::erase_if(starts_,
                  [&](const auto& known) { return start_of(paths_, known.first) != known.second; });
    if (starts_.empty() && job_.watched == 0) {
      remember(find_processes(paths_, job_).own);
    }
    return !starts_.empty();
  }

 private:
  void remember(const std::vector<int>& pids) {
    for (const int pid : pids) {
      if (const auto start = start_of(paths_, pid); start && pid != ::getpid()) {
        starts_[pid] = *start;
      }
    }
  }

  host::Paths paths_;
  Job job_;
  std::map<int, std::uint64_t> starts_;  // by pid
};

Result<Job> find_process(const host::Paths& paths, int pid, Job here) {
  struct stat owner{};
  const bool runs = start_of(paths, pid).has_value() &&
                    ::stat((paths.proc / std::to_string(pid)).c_str(), &owner) == 0;
  if (!runs) {
    return fail(ErrorCode::kNotFound, "process {} does not run", pid);
  }
  if (owner.st_uid != ::geteuid()) {
    return fail(ErrorCode::kNotFound, "process {} belongs to another user", pid);
  }
  set_manager(here, "run", std::to_string(pid));
  here.watched = pid;
  here.on_node = true;
  return here;
}

/// The job as its own processes know it, on this node alone.
Result<Job> find_job(const host::Paths& paths, const std::string& id, const Job& here) {
  Job job{.node = here.node};
  set_manager(job, "slurm", id);
  const JobProcesses found = find_processes(paths, job);
  if (found.own.empty()) {
    return fail(ErrorCode::kNotFound, "job {} {}", id,
                found.others ? "belongs to another user" : "of SLURM does not run on this node");
  }
  for (const int pid : found.own) {
    const std::string environment = environment_of(paths, pid);
    if (variable_in(environment, job.id_variable) == id) {
      job = describe_job([&](const std::string& name) { return variable_in(environment, name); },
                         here.node, pid);
      break;
    }
  }
  job.members = found.own;
  job.nodes = {job.node};
  job.node_count = 1;
  job.on_node = true;
  return job;
}

Result<Job> find_watched(const Options& options, const Job& here) {
  const host::Paths paths = paths_of(options);
  std::string_view word = options.watch;
  const bool is_job = word.starts_with(kJobPrefix);
  word.remove_prefix(is_job ? kJobPrefix.size() : 0);
  constexpr std::int64_t kMaxNumber = 1U << 31U;
  const auto number = is_number(word) ? parse_int<std::int64_t>(word) : std::nullopt;
  if (!number || *number < 1 || *number >= kMaxNumber) {
    return fail(ErrorCode::kInvalidArgument,
                "expected the number of a process or of a job, such as 12345 or job:4711, got {}",
                printable(options.watch));
  }
  const std::string id = std::to_string(*number);
  if (is_job) {
    return find_job(paths, id, here);
  }
  auto process = find_process(paths, static_cast<int>(*number), here);
  if (!process) {
    if (auto job = find_job(paths, id, here)) {
      return job;
    }
  }
  return process;
}

}  // namespace

Result<> watch(const Options& options, const Job& here) {
  CEEMS_TRY(job, find_watched(options, here));
  Watched watched(paths_of(options), std::move(job));
  prepare_signals();
  Options alone = options;
  alone.fanout = "none";
  Session session(alone, watched.job(), watched.program(), nullptr, real_clock().now_ms());
  session.begin();
  const sigset_t set = passed_signals();
  bool stopped = false;
  while (!stopped && watched.lives()) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 500'000'000};
    stopped = ::sigtimedwait(&set, nullptr, &pause) > 0;
    session.announce();
  }
  session.end(std::nullopt);
  return {};
}

}  // namespace ceems::exporter::run
