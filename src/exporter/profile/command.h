#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/paths.h"

namespace ceems::exporter::profile {

/// Whether a cgroup of this name is that of the unit: of a job, a service, a container or a VM.
bool names_unit(std::string_view directory, std::string_view unit);

/// A cgroup with its number.
struct FoundCgroup {
  std::string path;  ///< below the mount point
  std::uint64_t id = 0;
};

/// The uppermost cgroups below `root` that belong to the unit. Looks at no more than 100,000
/// directories.
std::vector<FoundCgroup> find_unit(const std::string& root, std::string_view unit);

/// The processes in a cgroup and below it.
std::vector<pid_t> processes_in(const std::string& directory);

/// `ceems_exporter profile UNIT|PID [flags]`: samples a unit or a process for some seconds and
/// writes the profile to a file. argv[0] is the program, argv[1] is "profile". Returns the exit
/// status.
int run_command(int argc, const char* const* argv);

}  // namespace ceems::exporter::profile
