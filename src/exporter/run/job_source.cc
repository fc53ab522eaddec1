#include "exporter/run/job_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "exporter/run/job_processes.h"

namespace ceems::exporter::run {

JobSource::JobSource(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      cpu_set_(std::make_shared<const std::vector<int>>(options_.allowed_cpus)),
      tree_(options_.paths.proc, options_.self, names_job(options_.paths, options_.job)) {
  const JobCgroup cgroup =
      find_job_cgroup(options_.paths, options_.cgroup_version, options_.self_cgroups, options_.job);
  cgroup_root_ = cgroup.root;
  directory_ = cgroup.directory;
  if (has_cgroup()) {
    const MutexLock lock(mutex_);
    reader_ = std::make_unique<StatReader>(options_.paths, cgroup.mount, cgroup.active,
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

std::vector<int> JobSource::pids() const {
  if (has_cgroup()) {
    return processes_below(cgroup_root_ + directory_);
  }
  const MutexLock lock(mutex_);
  return pids_;
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
