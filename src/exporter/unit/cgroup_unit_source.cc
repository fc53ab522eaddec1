#include "exporter/unit/cgroup_unit_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <source_location>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "exporter/unit/process_facts.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {
namespace {

constexpr std::uint64_t kLookAgainEvery = 16;  // walks between attempts to open absent files
// How long a young unit waits for its name.
constexpr auto kNameTimeout = std::chrono::seconds(3);
// How long a new directory may stay without a process before that is logged.
constexpr auto kEmptyTimeout = std::chrono::seconds(5);
// How often a unit that had a process is checked for having one, if its end is not reported.
constexpr auto kLifeEvery = std::chrono::seconds(10);
// A unit whose directory's counter stands still is read this often.
constexpr auto kQuietEvery = std::chrono::seconds(30);
// How long, how often, and how many at a time the thread reads units that were just created.
constexpr auto kNewborn = std::chrono::seconds(1);
constexpr auto kNewbornPause = std::chrono::milliseconds(50);
constexpr std::size_t kMaxNewborn = 256;
// A unit that nobody saw alive must have used this much.
constexpr double kDoubt = 1e-6;
// Tokens of the thread that are not serial numbers of units.
constexpr std::uint64_t kDirectories = std::numeric_limits<std::uint64_t>::max() - 1;
constexpr std::uint64_t kTimer = kDirectories - 1;
// Age at which the owner of a unit is final.
constexpr auto kSettled = std::chrono::seconds(5);

std::string key_of(std::string_view host, std::string_view uuid) {
  std::string key(host);
  key += '\0';
  key += uuid;
  return key;
}

Clock::SystemTime to_time(const struct timespec& time) {
  return Clock::SystemTime(std::chrono::duration_cast<Clock::SystemTime::duration>(
      std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec)));
}

// Divides what was only read as a total into user and system time, in the proportion of the rest.
void divide_total(UnitStats& stats) {
  const double known = stats.cpu_user_seconds + stats.cpu_system_seconds;
  const double missing = stats.cpu_total_seconds - known;
  if (missing > 0) {
    const double system = known > 0 ? stats.cpu_system_seconds / known : 0;
    stats.cpu_user_seconds += missing * (1 - system);
    stats.cpu_system_seconds += missing * system;
  }
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

Result<std::shared_ptr<CgroupUnitSource>> CgroupUnitSource::create(
    CgroupSourceOptions options, std::unique_ptr<UnitMatcher> matcher, const Clock& clock) {
  std::string active;
  if (options.mount.mode == host::CgroupMode::kLegacy) {
    auto directory = host::find_v1_hierarchy(options.paths.cgroup, options.active_subsystem, true);
    if (!directory) {
      return fail(ErrorCode::kNotFound, "no cgroup hierarchy '{}' in {}", options.active_subsystem,
                  options.paths.cgroup.string());
    }
    active = *std::move(directory);
  }
  const std::filesystem::path start =
      options.paths.cgroup / active / matcher->start().substr(matcher->start().empty() ? 0 : 1);
  std::error_code error;
  if (!std::filesystem::is_directory(start, error)) {
    return fail(ErrorCode::kNotFound, "no cgroup directory {}", start.string());
  }
  return std::shared_ptr<CgroupUnitSource>(
      new CgroupUnitSource(std::move(options), active, std::move(matcher), clock));
}

CgroupUnitSource::CgroupUnitSource(CgroupSourceOptions options,
                                   const std::string& active,
                                   std::unique_ptr<UnitMatcher> matcher,
                                   const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      reader_(options_.paths, options_.mount, active, options_.stats, options_.kept_files),
      tree_(reader_.active_fd(), std::move(matcher), options_.mount.live, reader_.budget()) {}

CgroupUnitSource::~CgroupUnitSource() {
  std::unique_ptr<PopulatedWatch> watch;
  {
    const MutexLock lock(mutex_);
    watch = std::move(watch_);
  }
  // The watch is destroyed without the lock: this joins its thread, which may wait for the mutex.
}

Result<std::shared_ptr<const UnitSnapshot>> CgroupUnitSource::snapshot(
    std::chrono::milliseconds max_age) {
  const MutexLock lock(mutex_);
  const auto now = clock_.steady_now();
  if (!last_ || !last_all_ || now - last_->taken > max_age) {
    if (auto done = sample(now, true); !done) {
      return fail(std::move(done).error());
    }
  }
  return last_;
}

Result<std::shared_ptr<const UnitSnapshot>> CgroupUnitSource::energy_snapshot(
    std::chrono::milliseconds max_age) {
  const MutexLock lock(mutex_);
  const auto now = clock_.steady_now();
  if (!last_ || now - last_->taken > max_age) {
    if (auto done = sample(now, !options_.mount.live); !done) {
      return fail(std::move(done).error());
    }
  }
  return last_;
}

// `all`: reads all statistics of all units, not only the CPU times.
Result<> CgroupUnitSource::sample(Clock::SteadyTime now, bool all) {
  now_ = now;
  wall_ = clock_.now();
  all_ = all;
  ++walks_;
  current_.clear();
  root_.clear();
  young_.clear();
  start_watch();
  reader_.begin_sample(now);
  // What has ended until now must be known before the counters of its directories are read.
  for (std::size_t changes = 0; births_ && changes < kMaxChanges;) {
    const std::size_t more = on_directories();
    changes = more > 0 ? changes + more : kMaxChanges;
  }
  const bool list = std::exchange(list_, false) || !births_ || now - listed_ >= kListEvery;
  auto walked = tree_.walk(now, list, *this);
  if (list) {
    listed_ = now;
  }
  young_count_ = young_.size();
  if (const auto refusal = tree_.take_refusal(); refusal && !std::exchange(births_refused_, true)) {
    log::warn("some cgroups cannot be watched; units in them that live less than a second are lost",
              {{"manager", options_.manager}, {"err", refusal->message}});
  }
  if (!walked) {
    list_ = true;
    return fail(std::move(walked).error().with_context(
        fmt::format("finding the units of {}", options_.manager)));
  }
  report_stale();
  last_ = assemble();
  last_all_ = all;
  current_.clear();
  return {};
}

void CgroupUnitSource::want_processes() {
  const MutexLock lock(mutex_);
  want_processes_ = true;
  last_.reset();
}

std::shared_ptr<UnitSnapshot> CgroupUnitSource::assemble() {
  auto result = std::make_shared<UnitSnapshot>();
  result->manager = options_.manager;
  result->taken = now_;
  result->wall = wall_;
  std::erase_if(ended_, [this](const auto& item) CEEMS_REQUIRES(mutex_) {
    const EndedUnit& ended = item.second;
    const auto age = now_ - ended.since;
    const bool over = age >= options_.keep_ended || (ended.exported && age >= kMinKeep);
    if (over) {
      ended_by_key_.erase(key_of(ended.unit.cgrouphostname, ended.unit.uuid));
    }
    return over;
  });
  for (const std::uint64_t serial : std::exchange(doubtful_, {})) {
    const auto known = ended_.find(serial);
    if (known != ended_.end() && known->second.doubtful) {
      ended_by_key_.erase(key_of(known->second.unit.cgrouphostname, known->second.unit.uuid));
      ended_.erase(known);
    }
  }
  result->units.reserve(current_.size() + ended_.size());
  for (const UnitState* state : current_) {
    result->units.push_back(state->unit);
  }
  for (const auto& [serial, ended] : ended_) {
    result->units.push_back(ended.unit);
  }
  return result;
}

std::unique_ptr<UnitState> CgroupUnitSource::found(const DirectoryMatch& match,
                                                   const std::string& path) {
  auto state = std::make_unique<UnitState>();
  state->serial = ++serial_;
  state->match = match;
  state->first_seen = now_;
  state->birth = now_;
  state->unit.path = path;
  const std::string component = path.substr(path.rfind('/') + 1);
  state->unit.name = printable(host::unescape_path(component).value_or(component));
  return state;
}

// The walk goes in order of names, so the first unit determines the root.
bool CgroupUnitSource::is_below_root(const UnitState& state) {
  const std::string_view path = state.unit.path;
  const std::string_view root = path.substr(0, path.find('/', 1));
  if (root_.empty()) {
    root_ = root;
  }
  return root_ == root;
}

void CgroupUnitSource::present(UnitState& state, DirectoryUse& parent) {
  if (options_.one_root && !is_below_root(state)) {
    if (!state.key.empty()) {
      end(state, now_);
    }
    parent.leave_out_child();
    return;
  }
  watch(state);
  if (must_check_life(state)) {
    state.alive = check_alive(state);
    state.life_read = now_;
  }
  if (state.alive) {
    if (!show(state)) {
      read_cpu(state);
      account(state, parent);
      return;
    }
  } else if (!state.ever_alive || state.stale || now_ - state.last_alive > kIdle) {
    if (state.ever_alive && !std::exchange(state.stale, true) && !state.key.empty()) {
      end(state, state.last_alive);
    }
    // A directory is created before the first process is moved into it, so it is not reported
    // at once.
    const bool waited = walks_ == 1 || now_ - state.first_seen > kEmptyTimeout;
    if (waited && !std::exchange(state.reported, true)) {
      newly_stale_.push_back(state.match.id);
    }
    if (births_ && !state.ever_alive && !waited) {  // it may just be coming or going
      if (!read_cpu(state)) {
        parent.miss_child();
      }
      account(state, parent);
    }
    return;
  }
  if (state.key.empty()) {
    return;
  }
  sample_stats(state, parent);
  account(state, parent);
  if (options_.owners) {
    settle_owner(state);
  }
  if (!state.watched && now_ - state.birth < kYoung) {
    young_.push_back(&state);
  }
  current_.push_back(&state);
}

// A unit was just created. Its files are opened now, because there may be no other time.
void CgroupUnitSource::born(UnitState& state) {
  state.unit.started = wall_;
  if (options_.one_root || options_.list_empty) {
    return;  // the next walk decides
  }
  watch(state);
  if (state.watched) {
    state.alive = reader_.populated(state.files, state.unit.path).value_or(false);
    if (state.alive && !options_.resolve_uuid) {
      show(state);
    }
  } else {
    newborn_.push_back(&state);
    if (timer_.valid() && !std::exchange(timer_armed_, true)) {
      struct itimerspec pause{};
      pause.it_value.tv_nsec = std::chrono::nanoseconds(kNewbornPause).count();
      pause.it_interval = pause.it_value;
      timer_armed_ = ::timerfd_settime(timer_.get(), 0, &pause, nullptr) == 0;
    }
  }
  read_cpu(state);
}

// The unit has a process. False while its name is not known yet.
bool CgroupUnitSource::show(UnitState& state) {
  state.last_alive = now_;
  state.unit.last_seen = wall_;
  state.final = false;
  if (!std::exchange(state.ever_alive, true)) {
    set_start(state);
  }
  state.stale = false;
  state.reported = false;
  if (state.key.empty() && !settle_name(state)) {
    return false;
  }
  if (state.uuid_pending) {
    resolve_again(state);
  }
  return true;
}

void CgroupUnitSource::vanished(UnitState& state, DirectoryUse& parent) {
  watched_.erase(state.serial);
  std::erase(young_, &state);
  std::erase(newborn_, &state);
  young_count_ = young_.size();
  const double seconds = state.unit.stats.cpu_seconds();
  parent.add_ended(std::max(0.0, seconds - state.sampled_seconds));
  if (state.stale) {
    return;
  }
  // Where a process in it is not reported, it may have come and gone unseen.
  const bool doubtful = !state.ever_alive && seconds <= 0;
  if (doubtful && (!options_.mount.live || options_.one_root || options_.list_empty || walks_ < 2 ||
                   state.reported)) {
    return;
  }
  if (state.key.empty() && options_.resolve_uuid) {
    return;  // nobody knows its name
  }
  if (state.key.empty()) {
    state.unit.id = state.match.id;
    state.unit.cgrouphostname = state.match.host;
    state.unit.uuid = UnitMatcher::uuid_of(state.match, state.unit.path);
    claim_key(state);
  }
  if (!state.final && (!state.ever_alive || (state.alive && reported_now_))) {
    state.unit.last_seen = wall_;
  }
  const std::uint64_t serial = end(state, now_);
  if (doubtful) {
    ended_.at(serial).doubtful = true;
    doubtful_.push_back(serial);
  }
  if (!state.final && ended_.contains(serial)) {
    constexpr double kLeast = 5e-3;  // several changes may be reported at once
    const double unread =
        std::chrono::duration<double>(now_ - std::max(state.cpu_read, state.birth)).count();
    const double reserved = state.unit.stats.reserved_cpus;
    const double cpus = reserved > 0 ? reserved : reader_.host_cpus();
    parent.add_lost(
        {.ended = serial, .unread_seconds = std::max(kLeast, unread), .max_cpus = cpus});
  }
}

// --- directories --------------------------------------------------------------------------------

void CgroupUnitSource::enter(DirectoryUse& use,
                             const DirectoryUse* parent,
                             const std::string& path) {
  if (!births_) {
    use.begin(std::nullopt);
  } else if (parent != nullptr && !parent->moved() && use.known()) {
    use.begin_quiet();
  } else {
    use.begin(reader_.subtree_seconds(use.file(), path));
  }
}

void CgroupUnitSource::leave(DirectoryUse& use, DirectoryUse* parent, const std::string& path) {
  bool usable = !path.empty();  // the root also counts what is in no cgroup
  if (usable && use.has_lost()) {
    // Processes in the directory itself cannot be told from those that ended below it.
    KeptFile procs;
    const FileText text = reader_.read_active(procs, path, "cgroup.procs");
    usable = !text.ok() || text.text.empty();
  }
  use.end(usable, [this](std::uint64_t serial, double seconds) CEEMS_REQUIRES(mutex_) {
    const auto known = ended_.find(serial);
    if (known == ended_.end() || (known->second.doubtful && seconds < kDoubt)) {
      return;
    }
    known->second.doubtful = false;
    UnitStats& stats = known->second.unit.stats;
    stats.cpu_total_seconds = stats.cpu_seconds() + seconds;
    divide_total(stats);
  });
  if (parent != nullptr) {
    if (const auto growth = use.growth()) {
      parent->add_child(*growth);
    } else {
      parent->leave_out_child();
    }
  }
}

// Tells the directory what the unit used since the last sample.
void CgroupUnitSource::account(UnitState& state, DirectoryUse& parent) {
  const double seconds = state.unit.stats.cpu_seconds();
  parent.add_child(std::max(0.0, seconds - state.sampled_seconds));
  if (seconds > state.sampled_seconds && !state.watched) {
    state.life_read = now_;  // only a process can have used it
  }
  state.sampled_seconds = seconds;
}

// A restarted unit has a new directory (a rebooted VM gets another number), which the walk may
// visit before it notices that the old one is gone.
void CgroupUnitSource::end_if_gone(UnitState& state) {
  struct stat info{};
  const bool seen = std::find(current_.begin(), current_.end(), &state) != current_.end();
  if (!seen && ::fstatat(reader_.active_fd(), state.unit.path.c_str() + 1, &info,
                         AT_SYMLINK_NOFOLLOW) != 0) {
    end(state, now_);
  }
}

// Moves the unit to the ended ones and frees its key.
std::uint64_t CgroupUnitSource::end(UnitState& state, Clock::SteadyTime since) {
  by_key_.erase(state.key);
  EndedUnit ended{.unit = state.unit, .since = since};
  ended.unit.ended = true;
  divide_total(ended.unit.stats);
  ended.unit.pids.clear();
  ended.unit.children.clear();
  const std::uint64_t serial = ++serial_;
  ended_.emplace(serial, std::move(ended));
  ended_by_key_[state.key] = serial;
  state.key.clear();
  if (ended_.size() > kMaxEnded) {
    const Unit& oldest = ended_.begin()->second.unit;
    forget_ended(key_of(oldest.cgrouphostname, oldest.uuid));
  }
  return serial;
}

void CgroupUnitSource::forget_ended(const std::string& key) {
  const auto known = ended_by_key_.find(key);
  if (known != ended_by_key_.end()) {
    ended_.erase(known->second);
    ended_by_key_.erase(known);
  }
}

// --- life ---------------------------------------------------------------------------------------

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
  if (options_.mount.live) {
    struct stat info{};
    if (::fstatat(reader_.active_fd(), state.unit.path.c_str() + 1, &info, AT_SYMLINK_NOFOLLOW) ==
        0) {
      // kernfs sets all three times when it creates the inode, and later changes one or two.
      state.unit.started =
          std::min({to_time(info.st_atim), to_time(info.st_mtim), to_time(info.st_ctim), wall_});
    }
    // kernfs may create the inode at the first lookup, which may be ours. Its times then do not
    // show the age of the directory.
    constexpr auto kJustNow = std::chrono::seconds(2);
    if (walks_ == 1 && wall_ - state.unit.started < kJustNow) {
      const auto oldest = oldest_start(options_.paths.proc, pids_of(state));
      state.unit.started = std::min(oldest.value_or(wall_), state.unit.started);
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

// --- statistics ----------------------------------------------------------------------------------

void CgroupUnitSource::sample_stats(UnitState& state, DirectoryUse& parent) {
  const auto age = now_ - state.stats_read;
  const bool young = now_ - state.birth < kYoung;
  const bool moved = parent.moved() || state.unit.stats.cpu_seconds() != state.sampled_seconds;
  if (all_ || state.unit.stats.error || age >= kQuietEvery ||
      (moved && age >= (young ? Clock::SteadyTime::duration(kStatsEveryYoung) : kStatsEvery))) {
    read_stats(state);
  } else if (moved) {
    read_cpu(state);
  } else {
    return;
  }
  if (state.cpu_read != now_) {
    parent.miss_child();  // it is being removed, and what it used last was not read
  }
}

bool CgroupUnitSource::read_cpu(UnitState& state) {
  if (!reader_.read_cpu(state.files, state.unit.path, state.unit.stats)) {
    return false;
  }
  state.cpu_read = now_;
  return true;
}

void CgroupUnitSource::read_stats(UnitState& state) {
  const bool young = now_ - state.birth < kYoung;
  const bool look_again = young || (walks_ + state.serial) % kLookAgainEvery == 0;
  state.stats_read = now_;
  auto done = reader_.read(state.files, state.unit.path, look_again, state.unit.stats);
  if (done) {
    state.cpu_read = now_;
    set_fault(state, {});
  } else if (done.error().code != ErrorCode::kNotFound) {
    set_fault(state, std::move(done).error().message);
  }
}

void CgroupUnitSource::set_fault(UnitState& state, std::string fault) {
  if (!fault.empty() && state.fault.empty()) {
    log::error("statistics of a unit cannot be read",
               {{"manager", options_.manager}, {"uuid", state.unit.uuid}, {"err", fault}});
  }
  state.unit.stats.error = !fault.empty();
  state.fault = std::move(fault);
}

void CgroupUnitSource::refresh_young() {
  const MutexLock lock(mutex_);
  const auto now = clock_.steady_now();
  for (UnitState* state : young_) {
    // A unit that ends now loses what it used since the last read: at most 1 % of its life.
    if (now - state->cpu_read < (now - state->birth) / 100) {
      continue;
    }
    if (reader_.read_cpu(state->files, state->unit.path, state->unit.stats)) {
      state->cpu_read = now;
      state->unit.last_seen = state->alive ? clock_.now() : state->unit.last_seen;
    }
  }
}

// --- what the kernel reports --------------------------------------------------------------------

void CgroupUnitSource::start_watch() {
  if (watch_ || watch_refused_ || !options_.mount.live) {
    return;
  }
  auto created = PopulatedWatch::create([this](std::uint64_t token) { on_event(token); });
  if (!created) {
    log::warn("the end of units cannot be watched; the last second of a unit may be lost",
              {{"err", created.error().message}});
    watch_refused_ = true;
    return;
  }
  watch_ = *std::move(created);
  auto births = DirectoryWatch::create(reader_.active_path());
  if (!births || !watch_->add_readable(births->fd(), kDirectories)) {
    log::warn("new units cannot be watched; units that live less than a second are lost",
              {{"manager", options_.manager},
               {"err", births ? std::string("epoll refused it") : births.error().message}});
    return;
  }
  births_ = *std::move(births);
  tree_.set_watch(&*births_);
  timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (timer_.valid() && !watch_->add_readable(timer_.get(), kTimer)) {
    timer_.reset();
  }
}

void CgroupUnitSource::watch(UnitState& state) {
  if (state.watched || !watch_ || options_.mount.mode != host::CgroupMode::kUnified) {
    return;
  }
  if (reader_.events_fd(state.files) < 0) {  // cgroup.events has not been opened yet
    reader_.populated(state.files, state.unit.path);
  }
  const int fd = reader_.events_fd(state.files);
  if (fd < 0) {
    return;
  }
  state.watched = watch_->add(fd, state.serial);
  if (state.watched) {
    watched_[state.serial] = &state;
  }
}

// Runs on the watch's thread.
void CgroupUnitSource::on_event(std::uint64_t token) {
  const MutexLock lock(mutex_);
  now_ = clock_.steady_now();
  wall_ = clock_.now();
  reader_.begin_sample(now_);
  if (token == kDirectories) {
    on_directories();
  } else if (token == kTimer) {
    on_timer();
  } else {
    on_populated(token);
  }
}

// Returns how many changes were reported.
std::size_t CgroupUnitSource::on_directories() {
  if (now_ - changes_since_ >= std::chrono::seconds(1)) {
    changes_since_ = now_;
    changes_ = 0;
  }
  reported_now_ = true;
  const std::size_t count =
      births_->read([this](const DirectoryWatch::Event& event) CEEMS_REQUIRES(mutex_) {
        if (event.lost || changes_ >= kMaxChanges) {
          list_ = true;
        } else if (event.created) {
          tree_.created(event.directory, event.name, now_, *this);
        } else {
          tree_.removed(event.directory, event.name, now_, *this);
        }
      });
  reported_now_ = false;
  changes_ += count;
  return count;
}

// Reads units that were just created and whose processes are not reported.
void CgroupUnitSource::on_timer() {
  std::uint64_t expirations = 0;
  if (::read(timer_.get(), &expirations, sizeof expirations) < 0) {
    return;  // it was disarmed in the meantime
  }
  std::size_t count = std::min(newborn_.size(), kMaxNewborn);
  std::rotate(newborn_.begin(), newborn_.begin() + static_cast<std::ptrdiff_t>(count),
              newborn_.end());
  for (std::size_t i = newborn_.size() - count; i < newborn_.size(); ++i) {
    UnitState& state = *newborn_[i];
    const bool ran = read_cpu(state) && state.unit.stats.cpu_seconds() > 0;
    if (!state.ever_alive) {
      state.alive = ran || check_any_process(state);
    }
    if (state.alive) {
      state.last_alive = now_;
      state.unit.last_seen = wall_;
      if (!state.ever_alive && !options_.resolve_uuid) {
        show(state);
      }
    }
  }
  std::erase_if(newborn_, [this](const UnitState* state) CEEMS_REQUIRES(mutex_) {
    return now_ - state->first_seen >
           (state->ever_alive ? Clock::SteadyTime::duration(kNewborn) : kEmptyTimeout);
  });
  if (newborn_.empty()) {
    timer_armed_ = false;
    const struct itimerspec never{};
    ::timerfd_settime(timer_.get(), 0, &never, nullptr);
  }
}

// The first process of a unit came or the last one ended. That is the last chance to read the
// statistics of a unit that has ended.
void CgroupUnitSource::on_populated(std::uint64_t serial) {
  const auto known = watched_.find(serial);
  if (known == watched_.end()) {
    return;
  }
  UnitState& state = *known->second;
  const auto populated = reader_.populated(state.files, state.unit.path);
  if (!populated) {
    return;
  }
  const bool ended = !*populated && (state.alive || !state.ever_alive);
  state.life_read = now_;
  state.alive = *populated;
  if (options_.one_root || options_.list_empty || options_.resolve_uuid) {
    if (ended && !state.key.empty()) {
      read_stats(state);
      state.unit.last_seen = wall_;
    }
    return;
  }
  if (*populated || (ended && !state.ever_alive)) {
    show(state);  // one that has ended already was alive
  }
  if (ended) {
    state.final = true;
    if (!state.key.empty()) {
      read_stats(state);
      state.unit.last_seen = wall_;
    } else {
      read_cpu(state);
    }
    state.final = state.cpu_read == now_;
  }
}

void CgroupUnitSource::report_stale() {
  if (newly_stale_.empty()) {
    return;
  }
  constexpr std::size_t kMaxListed = 20;
  std::string ids;
  for (std::size_t i = 0; i < std::min(newly_stale_.size(), kMaxListed); ++i) {
    ids += (i == 0 ? "" : ",") + printable(newly_stale_[i], 64);
  }
  const auto level = options_.warn_of_stale ? log::Level::kWarn : log::Level::kDebug;
  if (log::enabled(level)) {
    log::write(level, "units without processes are left out",
               {{"manager", options_.manager}, {"count", newly_stale_.size()}, {"ids", ids}},
               std::source_location::current());
  }
  newly_stale_.clear();
}

void CgroupUnitSource::mark_exported(const UnitSnapshot& snapshot) {
  const MutexLock lock(mutex_);
  for (const Unit& unit : snapshot.units) {
    if (!unit.ended) {
      continue;
    }
    const auto known = ended_by_key_.find(key_of(unit.cgrouphostname, unit.uuid));
    if (known != ended_by_key_.end()) {
      ended_.at(known->second).exported = true;
    }
  }
}

}  // namespace ceems::exporter
