#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/unit/cgroup_unit_source.h"
#include "exporter/unit/process_facts.h"
#include "host/cgroup/cgroup.h"

// The life, start, name and owner of units, and answers to questions about single units.
namespace ceems::exporter {
namespace {

// How long a young unit waits for its name.
constexpr auto kNameTimeout = std::chrono::seconds(3);
// How often a unit that had a process is checked for having one, if its end is not reported.
constexpr auto kLifeEvery = std::chrono::seconds(10);
// Age at which the owner of a unit is final.
constexpr auto kSettled = std::chrono::seconds(5);

Clock::SystemTime to_time(const struct timespec& time) {
  return Clock::SystemTime(std::chrono::duration_cast<Clock::SystemTime::duration>(
      std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec)));
}

// User whose slice of systemd the path lies in: user-1000.slice.
std::optional<std::uint32_t> slice_user(std::string_view path) {
  constexpr std::string_view kSlice = "/user.slice/user-";
  const auto at = path.find(kSlice);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  path.remove_prefix(at + kSlice.size());
  const auto dot = path.find('.');
  return dot != std::string_view::npos && path.substr(dot).starts_with(".slice/")
             ? parse_int<std::uint32_t>(path.substr(0, dot))
             : std::nullopt;
}

}  // namespace

// A unit that is watched reports that it got its first process and lost its last one.
bool CgroupUnitSource::must_check_life(const UnitState& state) {
  if (!options_.mount.live || want_processes_ || options_.list_empty) {
    return true;
  }
  const auto age = now_ - state.life_read;
  return state.watched ? age >= kListEvery : !state.alive || age >= kLifeEvery;
}

bool CgroupUnitSource::check_alive(UnitState& state) {
  if (want_processes_ || (!options_.mount.live && !options_.list_empty)) {
    return collect_processes(state) || options_.list_empty;
  }
  if (options_.list_empty) {
    return true;
  }
  if (const auto populated = reader_.populated(state.files, state.unit.path)) {
    return *populated;
  }
  return check_any_process(state);
}

// Whether the unit, which has no process, is still that of a running job.
bool CgroupUnitSource::is_held(UnitState& state) {
  if (!options_.running) {
    return false;
  }
  const bool named = !state.key.empty();
  const auto evidence =
      options_.running->look(named ? state.unit.uuid : state.match.id, state.match.host, now_);
  if (evidence != JobEvidence::kNone) {
    state.evidenced = state.evidenced || evidence == JobEvidence::kJob;
    return true;
  }
  return named && state.ever_alive && !state.stale && !state.evidenced;
}

bool CgroupUnitSource::runs(const Unit& unit) {
  return options_.running->look(unit.uuid, unit.cgrouphostname, now_) == JobEvidence::kJob;
}

// Whether there is a directory of the job on this virtual node, or on any if it is not named.
bool CgroupUnitSource::has_directory(const std::string& host, const std::string& uuid) const {
  return std::ranges::any_of(by_key_, [&](const auto& entry) {
    const Unit& unit = entry.second->unit;
    return unit.uuid == uuid && (host.empty() || unit.cgrouphostname == host);
  });
}

bool CgroupUnitSource::is_shown(const RunningJob& job) const {
  const auto is_it = [&](const Unit& unit) {
    return unit.uuid == job.id && (job.host.empty() || unit.cgrouphostname == job.host);
  };
  return has_directory(job.host, job.id) ||
         std::ranges::any_of(running_, [&](const auto& entry) { return is_it(entry.second); }) ||
         std::ranges::any_of(ended_, [&](const auto& entry) { return is_it(entry.second.unit); });
}

// Ends units without a directory whose job is over, and adds those whose job has none now: its
// steps come and go, or it had none yet.
void CgroupUnitSource::keep_running() {
  if (!options_.running) {
    return;
  }
  // The evidence that was known when the directory went may be older than the end of the job.
  constexpr auto kSettle = RunningJobs::kPause + std::chrono::seconds(1);
  for (auto it = ended_.begin(); it != ended_.end();) {
    EndedUnit& ended = it->second;
    const auto age = now_ - ended.since;
    if (ended.doubtful || age < kSettle || age > kIdle || !runs(ended.unit) ||
        has_directory(ended.unit.cgrouphostname, ended.unit.uuid)) {
      ++it;
      continue;
    }
    std::string key = key_of(ended.unit.cgrouphostname, ended.unit.uuid);
    ended.unit.ended = false;
    ended_by_key_.erase(key);
    running_[std::move(key)] = std::move(ended.unit);
    it = ended_.erase(it);
  }
  for (auto it = running_.begin(); it != running_.end();) {
    Unit& unit = it->second;
    // One that was shown before its virtual node was known goes on under the name of that.
    if (runs(unit) && !has_directory(unit.cgrouphostname, unit.uuid)) {
      unit.last_seen = wall_;
      ++it;
      continue;
    }
    end(it->first, unit, now_);
    it = running_.erase(it);
  }
  for (const RunningJob& job : options_.running->listed(now_)) {
    if (is_shown(job)) {
      continue;
    }
    const std::string host = job.host.empty() && hosts_.size() == 1 ? *hosts_.begin() : job.host;
    Unit& unit = running_[key_of(host, job.id)];
    unit.id = unit.uuid = job.id;
    unit.cgrouphostname = host;
    unit.name = "job_" + job.id;
    unit.path = "/" + unit.name;
    unit.started = job.since;
    unit.last_seen = wall_;
  }
}

// v1: whether any process exists, with as few reads as possible. Any line in cgroup.procs proves
// one: processes of other pid namespaces are listed as 0.
bool CgroupUnitSource::check_any_process(UnitState& state) {
  const FileText own = reader_.processes(state.files, state.unit.path);
  if (!own.ok() && !own.absent() && !own.vanished()) {
    return true;  // unreadable does not mean dead; read_stats() reports the error
  }
  if (own.ok() && !own.text.empty()) {
    return true;
  }
  if (!state.alive_procs.needs_path()) {
    const FileText text = reader_.read_active(state.alive_procs, state.unit.path, "cgroup.procs");
    if (text.ok() && !text.text.empty()) {
      return true;
    }
    state.alive_procs.close();
  }
  struct stat info{};
  if (::fstatat(reader_.active_fd(), state.unit.path.c_str() + 1, &info, AT_SYMLINK_NOFOLLOW) !=
          0 ||
      info.st_nlink == 2) {
    return false;
  }
  bool alive = false;
  for_each_cgroup(reader_.active_fd(), state.unit.path,
                  [&](const std::string& path) CEEMS_REQUIRES(mutex_) {
                    KeptFile procs;
                    const FileText text = reader_.read_active(procs, path, "cgroup.procs");
                    alive = text.ok() && !text.text.empty();
                    if (alive) {
                      state.alive_procs = std::move(procs);
                    }
                    return !alive;
                  });
  return alive;
}

// Fills pids and children from the whole subtree. Returns whether a process is alive.
bool CgroupUnitSource::collect_processes(UnitState& state) {
  Unit& unit = state.unit;
  unit.pids.clear();
  unit.children.clear();
  bool alive = false;
  for_each_cgroup(reader_.active_fd(), unit.path,
                  [&](const std::string& path) CEEMS_REQUIRES(mutex_) {
                    unit.children.push_back(path);
                    KeptFile procs;
                    const FileText text = reader_.read_active(procs, path, "cgroup.procs");
                    if (text.ok()) {
                      host::parse_cgroup_procs(text.text, unit.pids);
                      alive = alive || (options_.mount.live && !text.text.empty());
                    } else if (!text.absent() && !text.vanished() && path == unit.path) {
                      alive = true;
                    }
                    return true;
                  });
  std::erase_if(unit.pids, [this](int pid) {
    struct stat info{};
    return ::stat((options_.paths.proc / std::to_string(pid)).c_str(), &info) != 0;
  });
  return alive || !unit.pids.empty();
}

std::vector<int> CgroupUnitSource::pids_of(const UnitState& state) {
  if (!state.unit.pids.empty()) {
    return state.unit.pids;
  }
  constexpr std::size_t kEnough = 256;
  std::vector<int> pids;
  for_each_cgroup(reader_.active_fd(), state.unit.path,
                  [&](const std::string& path) CEEMS_REQUIRES(mutex_) {
                    KeptFile procs;
                    const FileText text = reader_.read_active(procs, path, "cgroup.procs");
                    if (text.ok()) {
                      host::parse_cgroup_procs(text.text, pids);
                    }
                    return pids.size() < kEnough;
                  });
  return pids;
}

// --- start, name and owner -----------------------------------------------------------------------

void CgroupUnitSource::set_start(UnitState& state) {
  const bool seen_born = state.unit.started != Clock::SystemTime{};
  if (options_.mount.live) {
    struct stat info{};
    if (::fstatat(reader_.active_fd(), state.unit.path.c_str() + 1, &info, AT_SYMLINK_NOFOLLOW) ==
        0) {
      state.unit.cgroup_id = info.st_ino;
      // kernfs sets all three times when it creates the inode, and later changes one or two.
      state.unit.started =
          std::min({to_time(info.st_atim), to_time(info.st_mtim), to_time(info.st_ctim), wall_});
    }
    // kernfs may create the inode at the first lookup, which may be ours. Its times then do not
    // show the age of the directory.
    constexpr auto kJustNow = std::chrono::seconds(2);
    if (walks_ == 1 && !seen_born && wall_ - state.unit.started < kJustNow) {
      const auto age = oldest_age(options_.paths.proc, pids_of(state));
      state.unit.started =
          std::min(wall_ - age.value_or(std::chrono::milliseconds(0)), state.unit.started);
    }
  }
  if (state.unit.started != Clock::SystemTime{}) {
    state.birth = now_ - (wall_ - state.unit.started);
  } else if (walks_ == 1) {
    state.birth = now_ - kYoung;
  }
}

// Sets the labels that identify the unit on the page. False while they are not known yet.
bool CgroupUnitSource::settle_name(UnitState& state) {
  Unit& unit = state.unit;
  unit.id = state.match.id;
  unit.cgrouphostname = state.match.host;
  unit.uuid = UnitMatcher::uuid_of(state.match, unit.path);
  if (state.match.sluid) {
    if (const auto job = slurm_job_of(options_.paths.proc, pids_of(state))) {
      unit.uuid = std::to_string(*job);
    } else if (now_ - state.birth < kNameTimeout) {
      return false;  // slurmstepd may not have been moved into the cgroup yet
    }
  }
  if (options_.resolve_uuid) {
    auto uuid = options_.resolve_uuid(unit.id);
    if (!uuid && now_ - state.birth < kNameTimeout) {
      return false;
    }
    state.uuid_pending = !uuid;
    unit.uuid = std::move(uuid).value_or(unit.uuid);
  }
  claim_key(state);
  return true;
}

// Tries again to resolve the uuid of a unit that is shown under its id.
void CgroupUnitSource::resolve_again(UnitState& state) {
  auto uuid = options_.resolve_uuid(state.unit.id);
  if (!uuid) {
    return;
  }
  state.uuid_pending = false;
  by_key_.erase(state.key);
  state.unit.uuid = *std::move(uuid);
  claim_key(state);
}

// Reserves the pair of host and uuid for this unit, since no two units may share one.
void CgroupUnitSource::claim_key(UnitState& state) {
  Unit& unit = state.unit;
  std::string key = key_of(unit.cgrouphostname, unit.uuid);
  if (state.match.part) {
    key += '\0' + unit.path;
  }
  if (const auto known = by_key_.find(key); known != by_key_.end()) {
    end_if_gone(*known->second);
  }
  if (by_key_.contains(key)) {
    log::warn(
        "two cgroups have the same unit id; a number is appended to the second",
        {{"manager", options_.manager}, {"uuid", unit.uuid}, {"cgroup", printable(unit.path)}});
    unit.uuid += fmt::format("-{}", state.serial);
    key = key_of(unit.cgrouphostname, unit.uuid);
  }
  forget_ended(key);
  running_.erase(key);
  hosts_.insert(unit.cgrouphostname);
  by_key_[key] = &state;
  state.key = std::move(key);
}

void CgroupUnitSource::settle_owner(UnitState& state) {
  // Service managers start processes as root and then change the user, so this is done twice.
  const bool first = state.unit.owner_uid < 0;
  const bool second = !first && now_ - state.first_seen >= kSettled && !state.owner_settled;
  if (!first && !second) {
    return;
  }
  state.owner_settled = second || walks_ == 1;
  auto owner = slice_user(state.unit.path);
  if (!owner && state.alive) {
    owner = owner_of(options_.paths.proc, pids_of(state));
  }
  if (owner) {
    state.unit.owner_uid = *owner;
  }
}

void CgroupUnitSource::probe(std::span<UnitProbe> probes) {
  const MutexLock lock(mutex_);
  for (UnitProbe& probe : probes) {
    const auto known = by_key_.find(key_of(probe.cgrouphostname, probe.uuid));
    if (known == by_key_.end()) {
      continue;
    }
    UnitFiles& files = known->second->files;
    const std::string& path = known->second->unit.path;
    if (probe.memory_above) {
      probe.memory_charged_bytes = reader_.memory_charged(files, path);
      if (probe.memory_charged_bytes > probe.memory_above) {
        probe.memory_held_bytes = reader_.memory_held(files, path);
      }
    }
    if (probe.io) {
      probe.io_bytes = reader_.io_bytes(files, path);
      if (!probe.io_bytes) {
        probe.io_stalled_seconds = reader_.io_stalled_seconds(files, path);
      }
      if (traffic_counted_) {
        probe.traffic_bytes = known->second->traffic_bytes;
      }
      probe.traffic_notes = known->second->traffic_notes;
    }
  }
}

void CgroupUnitSource::note_traffic(std::span<const UnitTraffic> traffic) {
  const MutexLock lock(mutex_);
  traffic_counted_ = true;
  for (const UnitTraffic& unit : traffic) {
    const auto known = by_key_.find(key_of(unit.cgrouphostname, unit.uuid));
    if (known != by_key_.end()) {
      known->second->traffic_bytes = unit.bytes;
      ++known->second->traffic_notes;
    }
  }
}

}  // namespace ceems::exporter
