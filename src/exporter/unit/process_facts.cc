#include "exporter/unit/process_facts.h"

#include <linux/capability.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "host/cgroup/process.h"
#include "host/read_file.h"
#include "os/privileges.h"

namespace ceems::exporter {
namespace {

constexpr std::size_t kMaxProcesses = 64;
constexpr std::size_t kMaxText = 4096;

std::string text_of(const std::filesystem::path& proc, int pid, std::string_view file) {
  auto text = host::read_file((proc / std::to_string(pid) / file).string(), kMaxText);
  return text ? *std::move(text) : std::string();
}

/// The path of the program that the process runs, from the kernel. A title proves nothing even for
/// a process of root, because a user may start a set-uid program under any name. Only files that
/// stand in for procfs in tests have no link: a process that has a title has one.
bool runs_slurmstepd(const std::filesystem::path& proc, int pid) {
  constexpr std::string_view kDeleted = " (deleted)";
  const os::RaisedCapabilities raised{CAP_SYS_PTRACE};
  std::error_code error;
  std::string target =
      std::filesystem::read_symlink(proc / std::to_string(pid) / "exe", error).filename().string();
  if (error) {
    return error == std::errc::no_such_file_or_directory;
  }
  if (target.ends_with(kDeleted)) {
    target.resize(target.size() - kDeleted.size());
  }
  return target == "slurmstepd";
}

std::span<const int> first(std::span<const int> pids) {
  return pids.first(std::min(pids.size(), kMaxProcesses));
}

}  // namespace

std::optional<std::uint32_t> owner_of(const std::filesystem::path& proc,
                                      std::span<const int> pids) {
  std::map<std::uint32_t, int> counts;
  std::optional<std::uint32_t> owner;
  for (const int pid : first(pids)) {
    const auto uid = host::parse_status_uid(text_of(proc, pid, "status"));
    if (uid && ++counts[*uid] > (owner ? counts[*owner] : 0)) {
      owner = uid;
    }
  }
  return owner;
}

std::optional<std::chrono::milliseconds> oldest_age(const std::filesystem::path& proc,
                                                    std::span<const int> pids) {
  std::optional<std::uint64_t> oldest;
  for (const int pid : first(pids)) {
    const auto ticks = host::parse_start_ticks(text_of(proc, pid, "stat"));
    if (ticks && (!oldest || *ticks < *oldest)) {
      oldest = ticks;
    }
  }
  // Not from the boot time in /proc/stat, which has whole seconds only.
  const auto text = host::read_file((proc / "uptime").string());
  const auto uptime = text ? host::parse_uptime(*text) : std::nullopt;
  if (!oldest || !uptime || *oldest > *uptime) {
    return std::nullopt;
  }
  return std::chrono::milliseconds((*uptime - *oldest) * 10);
}

std::optional<std::uint64_t> slurm_job_of(const std::filesystem::path& proc,
                                          std::span<const int> pids) {
  for (const int pid : first(pids)) {
    const auto job = host::parse_slurmstepd_job(text_of(proc, pid, "cmdline"));
    if (job && host::parse_status_uid(text_of(proc, pid, "status")) == 0U &&
        runs_slurmstepd(proc, pid)) {
      return job;
    }
  }
  return std::nullopt;
}

}  // namespace ceems::exporter
