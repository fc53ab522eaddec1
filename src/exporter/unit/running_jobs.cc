#include "exporter/unit/running_jobs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr std::string_view kBatch = "job";
constexpr std::size_t kMaxId = 20;
// Numbers of steps from here on are special: interactive, batch, extern, and pending ones.
constexpr std::uint32_t kFirstSpecialStep = 0xFFFFFFFA;

std::string short_hostname() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0
             ? std::string(
                   std::string_view(name.data()).substr(0, std::string_view(name.data()).find('.')))
             : std::string();
}

std::string expand(std::string_view pattern, std::string_view node, std::string_view hostname) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'n' || next == 'h') {
      path += next == 'n' ? node : hostname;
      ++i;
    } else {
      path += pattern[i];
    }
  }
  return path;
}

/// The number in "job00042" without leading zeros; empty for other names.
std::string_view batch_job(std::string_view name) {
  if (!name.starts_with(kBatch)) {
    return {};
  }
  name.remove_prefix(kBatch.size());
  if (!is_number(name, kMaxId)) {
    return {};
  }
  name.remove_prefix(std::min(name.find_first_not_of('0'), name.size()));
  return name;
}

}  // namespace

std::optional<StepSocket> parse_step_socket(std::string_view name) {
  const auto at = name.rfind('_');
  if (at == std::string_view::npos || at == 0) {
    return std::nullopt;
  }
  std::string_view rest = name.substr(at + 1);
  const std::string_view job = take_until(rest, '.');
  const auto step = parse_int<std::uint32_t>(take_until(rest, '.'));
  if (!is_number(job, kMaxId) || !step || (!rest.empty() && !is_number(rest, kMaxId))) {
    return std::nullopt;
  }
  return StepSocket{.node = name.substr(0, at), .job = job, .lasts = *step >= kFirstSpecialStep};
}

RunningJobs::RunningJobs(RunningJobsOptions options)
    : options_(std::move(options)), hostname_(short_hostname()) {}

/// `path` itself must be of the type, belong to root, and be writable by no other user.
bool RunningJobs::is_trusted(const std::string& path, mode_t type, Clock::SystemTime* time) const {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 || (info.st_mode & S_IFMT) != type ||
      (info.st_uid != 0 && info.st_uid != options_.trusted_uid) ||
      (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return false;
  }
  if (time != nullptr) {
    *time = Clock::SystemTime(std::chrono::duration_cast<Clock::SystemTime::duration>(
        std::chrono::seconds(info.st_mtim.tv_sec) +
        std::chrono::nanoseconds(info.st_mtim.tv_nsec)));
  }
  return true;
}

void RunningJobs::read_spool(const std::string& path, std::string_view host, bool of_all) {
  if (!is_trusted(path, S_IFDIR, nullptr)) {
    return;
  }
  const auto names = host::list_directory(path);
  if (!names) {
    return;
  }
  for (const std::string& name : *names) {
    if (const auto job = batch_job(name); !job.empty()) {
      jobs_.emplace(host, job);
      if (of_all) {
        anywhere_.emplace(job);
      }
    } else if (const auto step = parse_step_socket(name)) {
      (step->lasts ? jobs_ : steps_).emplace(host, step->job);
      (step->lasts ? jobs_ : steps_).emplace(step->node, step->job);
    }
  }
}

void RunningJobs::read_map() {
  const std::string& directory = options_.map_directory;
  if (directory.empty() || !is_trusted(directory, S_IFDIR, nullptr)) {
    return;
  }
  const auto names = host::list_directory(directory);
  if (!names) {
    return;
  }
  for (const std::string& name : *names) {
    const auto dot = name.rfind('.');
    RunningJob job{.id = name.substr(dot == std::string::npos ? 0 : dot + 1),
                   .host = dot == std::string::npos ? std::string() : name.substr(0, dot)};
    if (is_number(job.id, kMaxId) && dot != 0 &&
        is_trusted(fmt::format("{}/{}", directory, name), S_IFREG, &job.since)) {
      jobs_.emplace(job.host, job.id);
      if (job.host.empty()) {
        anywhere_.insert(job.id);
      }
      listed_.push_back(std::move(job));
    }
  }
}

void RunningJobs::refresh(Clock::SteadyTime now) {
  if (std::exchange(ever_read_, true) && now - read_ < kPause) {
    return;
  }
  read_ = now;
  jobs_.clear();
  steps_.clear();
  anywhere_.clear();
  listed_.clear();
  hosts_.insert(std::string());
  for (const std::string& host : hosts_) {
    for (const std::string& spool : options_.spools) {
      // Without %n in its path, a directory belongs to one slurmd, or to several by their sockets.
      const bool of_one = spool.contains("%n");
      if (host.empty() || of_one) {
        read_spool(expand(spool, host.empty() ? hostname_ : host, hostname_), host, !of_one);
      }
    }
  }
  read_map();
}

JobEvidence RunningJobs::look(const std::string& id,
                              const std::string& host,
                              Clock::SteadyTime now) {
  if (!host.empty() && hosts_.insert(host).second) {
    ever_read_ = false;
  }
  refresh(now);
  if (jobs_.contains({host, id}) || anywhere_.contains(id)) {
    return JobEvidence::kJob;
  }
  return steps_.contains({host, id}) ? JobEvidence::kStep : JobEvidence::kNone;
}

const std::vector<RunningJob>& RunningJobs::listed(Clock::SteadyTime now) {
  refresh(now);
  return listed_;
}

}  // namespace ceems::exporter
