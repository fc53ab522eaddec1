#include "exporter/run/job_source.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"
#include "host/cgroup/mount.h"
#include "host/read_file.h"

namespace ceems::exporter::run {
namespace {

constexpr std::size_t kMaxEnvironment = std::size_t{1} << 20U;
constexpr std::size_t kMaxDirectories = 10'000;

/// Says whether a process is the one that is watched, or has the job's number in its environment,
/// which only its own user can read.
std::function<bool(int pid)> has_job(const host::Paths& paths, const Job& job) {
  if (job.watched > 0) {
    return [watched = job.watched](int pid) { return pid == watched; };
  }
  if (job.id_variable.empty()) {
    return {};
  }
  return [proc = paths.proc, line = job.id_variable + "=" + job.id](int pid) {
    const auto text =
        host::read_file((proc / std::to_string(pid) / "environ").string(), kMaxEnvironment);
    if (!text) {
      return false;
    }
    const auto variables = split(*text, '\0');
    return std::ranges::find(variables, line) != variables.end();
  };
}

/// The processes of a cgroup and of those below it, ascending.
std::vector<int> processes_below(const std::string& directory) {
  std::vector<int> pids;
  const auto add = [&pids](const std::filesystem::path& folder) {
    if (const auto text = host::read_file((folder / "cgroup.procs").string())) {
      for (const std::string_view line : split(*text, '\n')) {
        if (const auto pid = parse_int<int>(line)) {
          pids.push_back(*pid);
        }
      }
    }
  };
  add(directory);
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(directory, error);
  std::size_t seen = 0;
  for (; !error && entry != std::filesystem::recursive_directory_iterator() &&
         ++seen < kMaxDirectories;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) {
      add(entry->path());
    }
  }
  std::ranges::sort(pids);
  return pids;
}

}  // namespace

JobSource::JobSource(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      cpu_set_(std::make_shared<const std::vector<int>>(options_.allowed_cpus)),
      tree_(options_.paths.proc, options_.self, has_job(options_.paths, options_.job)) {
  const host::CgroupMount mount =
      host::detect_cgroup(options_.paths.cgroup, options_.cgroup_version);
  std::string controller;
  std::string active;
  if (mount.mode == host::CgroupMode::kLegacy) {
    const auto found = host::find_v1_hierarchy(options_.paths.cgroup, "cpuacct", true);
    controller = "cpuacct";
    active = found.value_or(std::string());
  }
  const auto directory = job_directory(options_.self_cgroups, controller, options_.job);
  if (!directory) {
    return;
  }
  const std::filesystem::path root =
      active.empty() ? options_.paths.cgroup : options_.paths.cgroup / active;
  cgroup_root_ = root.string();
  if (host::is_directory(cgroup_root_ + *directory)) {
    directory_ = *directory;
    const MutexLock lock(mutex_);
    reader_ = std::make_unique<StatReader>(options_.paths, mount, active,
                                           StatOptions{.flavour = StatFlavour::kGeneric},
                                           UnitFiles::kCount);
  }
}

Result<> JobSource::read_cgroup() {
  reader_->begin_sample(clock_.steady_now());
  CEEMS_TRY(reader_->read(files_, directory_, StatScope{}, read_));
  if (!base_) {
    base_ = read_;
  }
  const UnitStats before = std::exchange(stats_, read_);
  const auto since = [](double now, double start, double most) {
    return std::max(now - start, most);
  };
  stats_.cpu_user_seconds =
      since(read_.cpu_user_seconds, base_->cpu_user_seconds, before.cpu_user_seconds);
  stats_.cpu_system_seconds =
      since(read_.cpu_system_seconds, base_->cpu_system_seconds, before.cpu_system_seconds);
  stats_.cpu_total_seconds = 0;  // it is the sum of the two
  if (want_processes_) {
    pids_ = processes_below(cgroup_root_ + directory_);
  }
  return {};
}

Result<> JobSource::read_tree() {
  CEEMS_TRY(use, tree_.read());
  stats_ = UnitStats{};
  stats_.cpu_user_seconds = use.user_seconds;
  stats_.cpu_system_seconds = use.system_seconds;
  stats_.memory_rss_bytes = use.memory_held_bytes;
  stats_.memory_used_bytes = use.memory_held_bytes;
  stats_.memory_held_bytes = use.memory_held_bytes;
  stats_.memory_reserved = false;
  pids_ = std::move(use.pids);
  return {};
}

Result<std::shared_ptr<const UnitSnapshot>> JobSource::snapshot(std::chrono::milliseconds max_age) {
  const MutexLock lock(mutex_);
  const auto now = clock_.steady_now();
  if (last_ != nullptr && now - last_->taken <= max_age) {
    return last_;
  }
  if (has_cgroup()) {
    CEEMS_TRY(read_cgroup());
  } else {
    CEEMS_TRY(read_tree());
  }
  if (options_.job.managed() && stats_.reserved_cpus <= 0) {
    stats_.reserved_cpus = cpus();
    stats_.cpu_set = cpu_set_;
  }
  stats_.cpus = cpus();
  auto result = std::make_shared<UnitSnapshot>();
  result->manager = options_.job.manager;
  result->taken = now;
  result->wall = clock_.now();
  Unit& unit = result->units.emplace_back();
  unit.id = options_.job.id;
  unit.uuid = options_.job.id;
  unit.path = directory_;
  unit.pids = want_processes_ ? pids_ : std::vector<int>();
  unit.stats = stats_;
  unit.last_seen = result->wall;
  last_ = result;
  return last_;
}

void JobSource::want_processes() {
  const MutexLock lock(mutex_);
  want_processes_ = true;
}

UnitStats JobSource::last() const {
  const MutexLock lock(mutex_);
  return stats_;
}

}  // namespace ceems::exporter::run
