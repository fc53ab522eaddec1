#pragma once

#include <filesystem>

namespace ceems::host {

/// Where the kernel's file systems are mounted. Everything that reads them gets this struct, so the
/// same code works with the other roots of containers and tests.
struct Paths {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
};

}  // namespace ceems::host
