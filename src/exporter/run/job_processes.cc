#include "exporter/run/job_processes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/strings.h"
#include "exporter/run/process_tree.h"
#include "host/read_file.h"

namespace ceems::exporter::run {
namespace {

constexpr std::size_t kMaxEnvironment = std::size_t{1} << 20U;
constexpr std::size_t kMaxDirectories = 10'000;
constexpr int kMaxAncestors = 1000;

std::string process_file(const host::Paths& paths, int pid, std::string_view file) {
  return host::read_file((paths.proc / std::to_string(pid) / file).string(), kMaxEnvironment)
      .value_or(std::string());
}

}  // namespace

JobCgroup find_job_cgroup(const host::Paths& paths,
                          const std::string& version,
                          std::string_view cgroups,
                          const Job& job) {
  JobCgroup found{.mount = host::detect_cgroup(paths.cgroup, version)};
  if (found.mount.mode == host::CgroupMode::kLegacy) {
    found.controller = "cpuacct";
    found.active = host::find_v1_hierarchy(paths.cgroup, "cpuacct", true).value_or(std::string());
  }
  const auto root = found.active.empty() ? paths.cgroup : paths.cgroup / found.active;
  found.root = root.string();
  const auto directory = job_directory(cgroups, found.controller, job);
  if (directory && host::is_directory(found.root + *directory)) {
    found.directory = *directory;
  }
  return found;
}

std::function<bool(int pid)> names_job(const host::Paths& paths, const Job& job) {
  if (job.watched > 0) {
    return [watched = job.watched](int pid) { return pid == watched; };
  }
  if (job.id_variable.empty()) {
    return {};
  }
  return [paths, line = job.id_variable + "=" + job.id](int pid) {
    const std::string text = process_file(paths, pid, "environ");
    const auto variables = split(text, '\0');
    return std::ranges::find(variables, line) != variables.end();
  };
}

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

JobProcesses find_processes(const host::Paths& paths, const Job& job) {
  JobProcesses found;
  const auto controller = find_job_cgroup(paths, {}, {}, job).controller;
  const auto names = names_job(paths, job);
  const auto entries = host::list_directory(paths.proc.string());
  for (const std::string& entry : entries ? *entries : std::vector<std::string>()) {
    const auto pid = parse_int<int>(entry);
    struct stat owner{};
    if (!pid || ::stat((paths.proc / entry).c_str(), &owner) != 0) {
      continue;
    }
    const bool own = owner.st_uid == ::geteuid();
    const bool member = job_directory(process_file(paths, *pid, "cgroup"), controller, job) ||
                        (own && names && names(*pid));
    if (member && own) {
      found.own.push_back(*pid);
    }
    found.others = found.others || (member && !own && owner.st_uid != 0);
  }
  std::ranges::sort(found.own);
  return found;
}

std::string environment_of(const host::Paths& paths, int pid) {
  return process_file(paths, pid, "environ");
}

std::string variable_in(std::string_view environment, std::string_view name) {
  for (std::string_view variable : split(environment, '\0')) {
    if (take_until(variable, '=') == name) {
      return std::string(variable);
    }
  }
  return {};
}

Membership::Membership(host::Paths paths, Job job, int self)
    : paths_(std::move(paths)),
      job_(std::move(job)),
      self_(self),
      cgroup_(find_job_cgroup(paths_, {}, process_file(paths_, self, "cgroup"), job_)),
      names_(names_job(paths_, job_)) {}

bool Membership::has(int pid) const {
  if (!cgroup_.directory.empty()) {
    return job_directory(process_file(paths_, pid, "cgroup"), cgroup_.controller, job_) ==
           cgroup_.directory;
  }
  for (int i = 0; i < kMaxAncestors && pid > 1; ++i) {
    if (pid == self_ || (names_ && names_(pid))) {
      return true;
    }
    const auto stat = parse_process_stat(process_file(paths_, pid, "stat"));
    pid = stat ? stat->parent : 0;
  }
  return false;
}

}  // namespace ceems::exporter::run
