#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::host {

/// Statistics of Lustre 2.10 to 2.15 (Lustre Operations Manual, "Monitoring a Lustre File System").
/// The files are below /proc/fs/lustre or, for newer versions, /sys/kernel/debug/lustre.

/// How often something was done and the sum of its sizes or times. The views point into the text
/// that was parsed.
struct LustreCount {
  std::string_view name;  ///< "read_bytes", "open", "req_waittime"
  std::uint64_t samples = 0;
  std::string_view unit;             ///< "bytes", "usecs" (or "usec"), "reqs" (or "regs"), ...
  std::optional<std::uint64_t> sum;  ///< in `unit`; nothing if not listed or if it overflowed
};

/// Whether the sum of such a unit is in microseconds.
bool is_lustre_time(std::string_view unit);

/// Parses a file `stats`: lines "NAME COUNT samples [UNIT] MIN MAX SUM SUMSQ", of which those after
/// the unit may be missing, in `counts`, whose memory is reused. Times of the file itself are left
/// out. kParse, with the first line that is malformed: `counts` has all others.
Result<> parse_lustre_stats(std::string_view text, std::vector<LustreCount>& counts);

/// A job ID as clients send it, with what the job did on one target.
struct LustreJob {
  std::string_view id;  ///< without quotation marks; see is_lustre_job_id()
  std::vector<LustreCount> counts;
};

/// Parses a file `job_stats`, a list in a form of YAML, and calls `use` for each job of which all
/// lines are valid. Histograms (Lustre 2.15) are skipped. The object of the call is reused. kParse,
/// with the first line that is malformed or cut: only that job is left out.
Result<> parse_lustre_job_stats(std::string_view text,
                                const std::function<void(const LustreJob&)>& use);

/// Whether a job ID is short and has only letters, digits and "._:@+-/[]". Jobs choose it
/// themselves, as the name of a process or the value of a variable, so it can be any text.
bool is_lustre_job_id(std::string_view id);

/// The name of the file system of a directory of `llite`: "scratch" of "scratch-ffff8b1c5a3e8000".
/// Nothing for other text.
std::optional<std::string_view> lustre_client_filesystem(std::string_view directory);

/// A target of a file system.
struct LustreTarget {
  std::string_view filesystem;
  bool metadata = false;  ///< a metadata target (MDT); otherwise an object storage target (OST)
};

/// The target of a directory of `obdfilter` or `mdt`: "scratch-OST001f". Nothing for other text.
std::optional<LustreTarget> lustre_target(std::string_view directory);

/// The target of a directory of `osc` or `mdc` that belongs to a mounted file system:
/// "scratch-OST001f-osc-ffff8b1c5a3e8000". Nothing for other text, such as the connections between
/// servers.
std::optional<LustreTarget> lustre_client_target(std::string_view directory);

/// Reads an open file from its start. Unlike reread(), a short read does not end it: a record of
/// `job_stats` may be larger than a page, and then the kernel returns its heading alone. Errors: as
/// reread().
Result<> read_lustre_file(const UniqueFd& fd, std::string& buffer, std::size_t limit);

}  // namespace ceems::host
