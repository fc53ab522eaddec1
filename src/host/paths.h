#pragma once

#include <filesystem>

namespace ceems::host {

/// Where the kernel's file systems are mounted. Passed to everything that reads them, so containers
/// and tests use other roots with the same code.
struct Paths {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
};

}  // namespace ceems::host
