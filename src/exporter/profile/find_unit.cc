#include "exporter/profile/find_unit.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::size_t kMaxDirectories = 100'000;
constexpr std::size_t kShortestId = 8;  // an id that may be a part of a name

std::string with_underscores(std::string_view unit) {
  std::string text(unit);
  std::ranges::replace(text, '-', '_');
  return text;
}

}  // namespace

bool names_unit(std::string_view directory, std::string_view unit) {
  if (unit.empty()) {
    return false;
  }
  const std::string name(unit);
  for (const std::string& whole : {name, "job_" + name, name + ".service", name + ".scope"}) {
    if (directory == whole) {
      return true;
    }
  }
  // kubepods-burstable-podUID.slice with '_' for '-', machine-qemu-…-instance-00000001.scope
  return unit.size() >= kShortestId &&
         (directory.contains("pod" + with_underscores(unit)) || directory.contains("pod" + name) ||
          directory.contains("-" + name));
}

std::vector<FoundCgroup> find_unit(const std::string& root, std::string_view unit) {
  std::vector<FoundCgroup> found;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(root, error);
  std::size_t seen = 0;
  for (;
       !error && entry != std::filesystem::recursive_directory_iterator() && seen < kMaxDirectories;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored)) {
      continue;
    }
    ++seen;
    if (!names_unit(entry->path().filename().string(), unit)) {
      continue;
    }
    struct stat info{};
    if (::stat(entry->path().c_str(), &info) == 0) {
      found.push_back({.path = entry->path().string().substr(root.size()), .id = info.st_ino});
    }
    entry.disable_recursion_pending();
  }
  return found;
}

std::vector<pid_t> processes_in(const std::string& directory) {
  std::vector<pid_t> pids;
  const auto add = [&](const std::filesystem::path& folder) {
    if (const auto text = host::read_file((folder / "cgroup.procs").string())) {
      for (const std::string_view line : split(*text, '\n')) {
        if (const auto pid = parse_int<pid_t>(line)) {
          pids.push_back(*pid);
        }
      }
    }
  };
  add(directory);
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) {
      add(entry->path());
    }
  }
  return pids;
}

}  // namespace ceems::exporter::profile
