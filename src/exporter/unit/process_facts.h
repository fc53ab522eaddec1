#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

namespace ceems::exporter {

/// The user who owns most of the processes; the first one on a tie. Nothing if no process could be
/// read. Only the first 64 processes are considered.
std::optional<std::uint32_t> owner_of(const std::filesystem::path& proc, std::span<const int> pids);

/// How long ago the oldest process started, to 10 ms. Nothing if no process could be read. Only the
/// first 64 processes are considered.
std::optional<std::chrono::milliseconds> oldest_age(const std::filesystem::path& proc,
                                                    std::span<const int> pids);

/// The number of the job whose slurmstepd is among the processes: a process of root that runs a
/// program of that name. Raises CAP_SYS_PTRACE to see what it runs.
std::optional<std::uint64_t> slurm_job_of(const std::filesystem::path& proc,
                                          std::span<const int> pids);

}  // namespace ceems::exporter
