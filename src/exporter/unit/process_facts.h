#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "base/clock.h"

namespace ceems::exporter {

/// User who owns most of the processes (of as many, the one met first); nothing where none could be
/// read. Looks at the first 64 only.
std::optional<std::uint32_t> owner_of(const std::filesystem::path& proc, std::span<const int> pids);

/// Start of the oldest of the processes, by the wall clock; nothing where none could be read. Looks
/// at the first 64 only.
std::optional<Clock::SystemTime> oldest_start(const std::filesystem::path& proc,
                                              std::span<const int> pids);

/// Number of the job whose step daemon is among the processes: a process of root that runs a
/// program named slurmstepd. Raises CAP_SYS_PTRACE to see what it runs.
std::optional<std::uint64_t> slurm_job_of(const std::filesystem::path& proc,
                                          std::span<const int> pids);

}  // namespace ceems::exporter
