// Events of units that the kernel reports between two samples.
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "exporter/unit/cgroup_unit_source.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {
namespace {

// How long, and how many at a time, the thread reads units that were just created.
constexpr auto kNewborn = std::chrono::seconds(1);
constexpr std::size_t kMaxNewborn = 256;
// Tokens of the thread that are not serial numbers of units.
constexpr std::uint64_t kDirectories = std::numeric_limits<std::uint64_t>::max() - 1;
constexpr std::uint64_t kTimer = kDirectories - 1;

}  // namespace

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
      read_stats(state, StatScope::Cpu::kAll);
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
      read_stats(state, StatScope::Cpu::kAll);
      state.unit.last_seen = wall_;
    } else {
      read_cpu(state);
    }
    state.final = state.cpu_read == now_;
  }
}

}  // namespace ceems::exporter
