#include "exporter/unit/thread_use.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "host/cgroup/process.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr std::size_t kMaxThreadText = 8192;
constexpr std::uint64_t kNanosecondsOfTick = 10'000'000;
constexpr std::uint64_t kShareOfRunning = 100;  // 1 %

}  // namespace

/// One look, and the unit that is looked at now.
struct ThreadUse::Pass {
  std::uint64_t nanoseconds = 0;  // since the last look; 0 at the first one
  std::unordered_map<int, Times> times = {};
  std::span<const int> online = {};
  bool any_process = false;  // of any unit
  bool any_read = false;

  std::size_t threads = 0;  // of the unit
  bool too_many = false;
  bool known = false;  // what a thread of the unit did since the last look
  UnitThreads result = {};
  std::vector<bool> cpus = {};
};

std::optional<ThreadUse::Times> ThreadUse::read_times(int tid, int folder) {
  if (host::read_file_at(folder, fmt::format("{}/schedstat", tid).c_str(), buffer_,
                         kMaxThreadText)) {
    const auto times = host::parse_schedstat(buffer_);
    if (times && (times->ran > 0 || times->waited > 0)) {
      return Times{.ran = times->ran, .waited = times->waited};
    }
  }
  if (!host::read_file_at(folder, fmt::format("{}/stat", tid).c_str(), buffer_, kMaxThreadText)) {
    return std::nullopt;
  }
  const auto ticks = host::parse_cpu_ticks(buffer_);
  return ticks ? std::optional(Times{.ran = *ticks * kNanosecondsOfTick}) : std::nullopt;
}

/// The times at the last look. They are 0 if the thread began after it, also where another thread
/// had its number. Nothing if the thread was left out then.
std::optional<ThreadUse::Times> ThreadUse::times_before(int tid, int folder, const Times& now) {
  const auto found = before_.find(tid);
  if (found != before_.end() && found->second.ran <= now.ran &&
      found->second.waited <= now.waited) {
    return found->second;
  }
  if (!looked_ ||
      !host::read_file_at(folder, fmt::format("{}/stat", tid).c_str(), buffer_, kMaxThreadText)) {
    return std::nullopt;
  }
  const auto started = host::parse_start_ticks(buffer_);
  return started && *started >= *looked_ ? std::optional(Times{}) : std::nullopt;
}

void ThreadUse::add_cpus(int tid, int folder, Pass& pass) {
  if (!host::read_file_at(folder, fmt::format("{}/status", tid).c_str(), buffer_, kMaxThreadText)) {
    return;
  }
  for (const int cpu : host::parse_allowed_cpus(buffer_).value_or(std::vector<int>())) {
    const auto place = static_cast<std::size_t>(cpu);
    if (place >= pass.cpus.size()) {
      pass.cpus.resize(place + 1);
    }
    pass.cpus[place] = true;
  }
}

void ThreadUse::look_at_thread(int tid, int folder, Pass& pass) {
  const auto now = read_times(tid, folder);
  if (!now) {
    return;  // it has ended
  }
  pass.any_read = true;
  pass.times[tid] = *now;
  const auto then = pass.nanoseconds > 0 ? times_before(tid, folder, *now) : std::nullopt;
  if (!then) {
    return;
  }
  pass.known = true;
  const std::uint64_t ran = now->ran - then->ran;
  const std::uint64_t wanted = ran + (now->waited - then->waited);
  pass.result.busy += wanted > pass.nanoseconds / 2 ? 1 : 0;
  if (ran >= pass.nanoseconds / kShareOfRunning) {
    add_cpus(tid, folder, pass);
  }
}

void ThreadUse::look_at_process(int pid, Pass& pass) {
  const std::string path = (proc_ / std::to_string(pid) / "task").string();
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (directory == nullptr) {
    return;
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): each thread has its own directory stream
  while (const dirent* entry = ::readdir(directory.get())) {
    const auto tid = parse_int<int>(std::string_view(entry->d_name));
    if (!tid) {
      continue;
    }
    if (++pass.threads > limits_.of_unit || pass.times.size() >= limits_.all) {
      pass.too_many = true;
      return;
    }
    look_at_thread(*tid, ::dirfd(directory.get()), pass);
  }
}

std::optional<UnitThreads> ThreadUse::look_at(std::span<const int> pids, Pass& pass) {
  pass.threads = 0;
  pass.too_many = pass.known = false;
  pass.result = {};
  pass.cpus.clear();
  for (const int pid : pids) {
    pass.any_process = true;
    look_at_process(pid, pass);
    if (pass.too_many) {
      return std::nullopt;
    }
  }
  if (!pass.known) {
    return std::nullopt;
  }
  const auto counts = [&](std::size_t cpu) {
    return pass.cpus[cpu] &&
           (pass.online.empty() || std::ranges::binary_search(pass.online, static_cast<int>(cpu)));
  };
  for (std::size_t cpu = 0; cpu < pass.cpus.size(); ++cpu) {
    if (counts(cpu)) {
      pass.result.cpus.push_back(static_cast<int>(cpu));
    }
  }
  return std::exchange(pass.result, {});
}

Result<ThreadUse::Look> ThreadUse::look(std::span<const std::span<const int>> units,
                                        std::span<const int> online) {
  const std::string path = (proc_ / "uptime").string();
  CEEMS_TRY(text, host::read_file(path));
  const auto uptime = host::parse_uptime(text);
  if (!uptime) {
    return fail(ErrorCode::kParse, "{}: expected a time", path);
  }
  Pass pass{.online = online};
  if (looked_ && *uptime > *looked_) {
    pass.nanoseconds = (*uptime - *looked_) * kNanosecondsOfTick;
  }
  Look look{.units = {}};
  for (const std::span<const int> pids : units) {
    look.units.push_back(look_at(pids, pass));
    look.left_out += pass.too_many ? 1 : 0;
  }
  before_ = std::move(pass.times);
  looked_ = uptime;
  if (pass.any_process && !pass.any_read) {
    return fail(ErrorCode::kPermissionDenied,
                "no process of any unit can be read in {}; run the exporter in the PID namespace "
                "of the host, with a /proc that is mounted without hidepid",
                proc_.string());
  }
  return look;
}

}  // namespace ceems::exporter
