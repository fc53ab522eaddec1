#include "exporter/unit/cgroup_unit_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <source_location>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {
namespace {

constexpr std::uint64_t kLookAgainEvery = 16;  // walks between attempts to open absent files
// A unit that was never seen alive must have used this much.
constexpr double kDoubt = 1e-6;

// Divides time that was only read as a total into user and system time, in the proportion of the
// rest.
void divide_total(UnitStats& stats) {
  const double known = stats.cpu_user_seconds + stats.cpu_system_seconds;
  const double missing = stats.cpu_total_seconds - known;
  if (missing > 0) {
    const double system = known > 0 ? stats.cpu_system_seconds / known : 0;
    stats.cpu_user_seconds += missing * (1 - system);
    stats.cpu_system_seconds += missing * system;
  }
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
    CEEMS_TRY(sample(now, true));
  }
  return last_;
}

Result<std::shared_ptr<const UnitSnapshot>> CgroupUnitSource::energy_snapshot(
    std::chrono::milliseconds max_age) {
  const MutexLock lock(mutex_);
  const auto now = clock_.steady_now();
  if (!last_ || now - last_->taken > max_age) {
    CEEMS_TRY(sample(now, !options_.mount.live));
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
  keep_running();
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
  result->units.reserve(current_.size() + running_.size() + ended_.size());
  for (const UnitState* state : current_) {
    if (!state->match.part) {
      result->units.push_back(state->unit);
    }
  }
  join_parts(*result);
  for (const auto& [key, unit] : running_) {
    result->units.push_back(unit);
  }
  for (const auto& [serial, ended] : ended_) {
    result->units.push_back(ended.unit);
  }
  return result;
}

// Adds the units of several directories, and what those used that are gone.
void CgroupUnitSource::join_parts(UnitSnapshot& result) {
  std::map<std::string, std::size_t> whole;  // position by key, once there is a part
  const auto place_of = [&](const std::string& key) {
    if (whole.empty()) {
      for (std::size_t i = 0; i < result.units.size(); ++i) {
        whole[key_of(result.units[i].cgrouphostname, result.units[i].uuid)] = i;
      }
    }
    return whole.find(key);
  };
  for (const UnitState* state : current_) {
    if (!state->match.part) {
      continue;
    }
    std::string key = key_of(state->unit.cgrouphostname, state->unit.uuid);
    if (const auto known = place_of(key); known != whole.end()) {
      add_part(result.units[known->second], state->unit);
    } else {
      forget_ended(key);
      whole[std::move(key)] = result.units.size();
      result.units.push_back(state->unit);
    }
  }
  for (auto it = past_parts_.begin(); it != past_parts_.end();) {
    if (const auto known = place_of(it->first); known != whole.end()) {
      add_part(result.units[known->second], it->second);
      ++it;
      continue;
    }
    const auto past = past_parts_.extract(it++);
    end(past.key(), past.mapped(), now_);
  }
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
  } else if (is_held(state) && show(state)) {
    state.unit.pids.clear();
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
    return;  // its name is unknown
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
  if (serial == 0) {
    return;
  }
  if (doubtful) {
    ended_.at(serial).doubtful = true;
    doubtful_.push_back(serial);
  }
  if (!state.final && ended_.contains(serial)) {
    constexpr double kLeast = 5e-3;  // several changes may be reported at once
    const double unread =
        std::chrono::duration<double>(now_ - std::max(state.cpu_read, state.birth)).count();
    const double reserved = state.unit.stats.reserved_cpus;
    double cpus = std::numeric_limits<double>::infinity();
    if (reserved > 0) {
      cpus = reserved;
    } else if (reader_.host_cpus() > 0) {
      cpus = reader_.host_cpus();
    }
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
    // Processes in the directory itself cannot be distinguished from processes that ended below it.
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

// Reports to the directory how much the unit used since the last sample.
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

// Moves the unit to the ended ones and frees its key. 0 if it is a part of a unit.
std::uint64_t CgroupUnitSource::end(UnitState& state, Clock::SteadyTime since) {
  by_key_.erase(state.key);
  if (state.match.part) {
    state.key.clear();
    auto [past, fresh] =
        past_parts_.try_emplace(key_of(state.unit.cgrouphostname, state.unit.uuid), state.unit);
    if (!fresh) {
      add_part(past->second, state.unit);
    }
    past->second.pids.clear();
    past->second.children.clear();
    past->second.stats.forget_levels();
    return 0;
  }
  return end(std::exchange(state.key, {}), state.unit, since);
}

std::uint64_t CgroupUnitSource::end(const std::string& key,
                                    const Unit& unit,
                                    Clock::SteadyTime since) {
  EndedUnit ended{.unit = unit, .since = since};
  if (const auto past = past_parts_.extract(key)) {
    add_part(ended.unit, past.mapped());
  }
  ended.unit.ended = true;
  divide_total(ended.unit.stats);
  ended.unit.pids.clear();
  ended.unit.children.clear();
  const std::uint64_t serial = ++serial_;
  ended_.emplace(serial, std::move(ended));
  ended_by_key_[key] = serial;
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

// --- statistics ----------------------------------------------------------------------------------

void CgroupUnitSource::sample_stats(UnitState& state, DirectoryUse& parent) {
  const bool live = options_.mount.live;
  const UnitStats& stats = state.unit.stats;
  const bool moved = parent.moved() || stats.cpu_seconds() != state.sampled_seconds;
  const bool read = live && moved && read_cpu(state);
  const bool changed = !live || (moved && !read) || stats.cpu_seconds() != state.stats_seconds;
  Clock::SteadyTime::duration pause = all_ ? kStatsEveryQuiet : kStatsEvery;
  if (stats.error || (all_ && changed)) {
    pause = {};
  } else if (!all_ && changed && now_ - state.birth < kYoung) {
    pause = kStatsEveryYoung;
  }
  if (now_ - state.stats_read >= pause) {
    using Cpu = StatScope::Cpu;
    const bool unknown = !live || stats.error || state.stats_seconds < 0 || (moved && !read);
    read_stats(state, unknown ? Cpu::kAll : (changed ? Cpu::kDivision : Cpu::kKnown));
  }
  if (moved && state.cpu_read != now_) {
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

void CgroupUnitSource::read_stats(UnitState& state, StatScope::Cpu cpu) {
  const bool young = now_ - state.birth < kYoung;
  const bool look_again = young || (walks_ + state.serial) % kLookAgainEvery == 0;
  const bool limits = !options_.mount.live || look_again || state.stats_seconds < 0 ||
                      now_ - state.limits_read >= kLimitsEvery;
  state.stats_read = now_;
  auto done =
      reader_.read(state.files, state.unit.path,
                   {.look_again = look_again, .cpu = cpu, .limits = limits}, state.unit.stats);
  if (done) {
    state.cpu_read = now_;
    state.stats_seconds = state.unit.stats.cpu_seconds();
    state.limits_read = limits ? now_ : state.limits_read;
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
