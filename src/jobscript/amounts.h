#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// Amounts as batch systems write them. Pure functions.
namespace ceems::jobscript {

inline constexpr double kMebi = 1024.0 * 1024;
inline constexpr double kMaxBytes = 9e18;                             ///< no size is as large
inline constexpr std::int64_t kMaxSeconds = 100LL * 366 * 24 * 3600;  ///< nor any time limit

/// Reads a size in bytes: a number with K, M, G, T, P or E, which are powers of 1024 and may be
/// followed by B, b, "bytes" ("9 Mbytes", "3.2G", "8388608kb"). Without a letter it is in
/// `default_unit` bytes; "b" or "w" (PBS: a word of 8 bytes) alone mean 1 and 8. Nothing for any
/// other text and for negative or absurd sizes.
std::optional<double> parse_size(std::string_view text, double default_unit);

/// "12:00:00", or a number of seconds. 0 for anything else.
std::int64_t clock_seconds(std::string_view text);

/// The time limit of sbatch: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
/// days-hours:minutes or days-hours:minutes:seconds. In seconds; nothing for anything else.
std::optional<std::int64_t> slurm_seconds(std::string_view text);

/// How many tasks an array has: "0-15", "1,4,9", "1-10:3", with "%4" for those that run at a time.
/// Nothing for anything else.
std::optional<std::int64_t> array_tasks(std::string_view text);

/// A count from 1 to a million; nothing for anything else.
std::optional<std::int64_t> count_in(std::string_view text);

/// The memory that a job of LSF reserves, from `rusage[mem=...]` of a resource requirement: MB
/// without a unit, for each host unless it says /task or /job. 0 if it reserves none.
double reserved_memory(std::string_view requirement, std::int64_t hosts, std::int64_t slots);

}  // namespace ceems::jobscript
