#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "model/unit.h"

namespace ceems::ingest {

/// How "320.5G" is read: as 320 GiB, as CEEMS 0.10.2 does, or exactly.
enum class MemoryRule { kTruncated, kExact };

/// The parsed AllocTRES; 0 for resources that are absent.
struct Allocation {
  std::int64_t nodes = 0;
  std::int64_t cpus = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t gpus = 0;
  std::int64_t billing = 0;
};

/// Adds up trackable resources one by one. Bounds on the counts keep products with times from
/// overflowing.
class AllocationBuilder {
 public:
  /// Adds a resource other than memory: "cpu", "node", "billing", "gres/gpu", "gres/gpu:a100". The
  /// number of GPUs is `gres/gpu`, or the sum of the typed ones (including MIG profiles) if that is
  /// missing. Other resources, such as gres/gpumem, are ignored.
  void add(std::string_view name, std::int64_t count);
  void add_memory(double bytes);
  [[nodiscard]] Allocation done() const;

 private:
  Allocation allocation_;
  std::optional<std::int64_t> all_gpus_;
  std::int64_t typed_gpus_ = 0;
};

/// Parses "billing=80,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=320.5G,node=1". mem takes K, M, G, T, P,
/// E as powers of 1024; without a letter it is in MiB. Elements that do not parse count as absent.
Allocation parse_alloc_tres(std::string_view text, MemoryRule rule);

/// The request at submission, and fields of newer versions of SLURM. Absent or empty: unknown, or
/// unlimited.
struct SlurmDetails {
  std::optional<std::int64_t> array_job = {};
  std::optional<std::int64_t> array_task = {};
  std::optional<std::int64_t> het_job = {};  ///< of a part of a heterogeneous job
  std::optional<std::int64_t> het_offset = {};
  std::optional<std::int64_t> time_limit_seconds = {};
  std::optional<std::int64_t> requested_memory_bytes = {};  ///< on all nodes together
  std::optional<std::int64_t> requested_cpus = {};
  std::optional<std::int64_t> restarts = {};
  std::optional<std::int64_t> eligible_ms = {};
  std::optional<std::int64_t> consumed_joules = {};  ///< as SLURM's own plugin measured them
  /// What the partition, the QOS and the account allow: seconds (0: no limit), memory on a node
  /// that has room for the job, memory on any node, where its nodes are not known, memory for each
  /// CPU, CPUs on a node, and the smallest number of nodes.
  std::optional<std::int64_t> partition_seconds = {};
  std::optional<std::int64_t> partition_bytes = {};
  std::optional<std::int64_t> partition_max_bytes = {};
  std::optional<std::int64_t> partition_cpu_bytes = {};
  std::optional<std::int64_t> partition_cpus = {};
  std::optional<std::int64_t> partition_min_nodes = {};
  std::string memory_per = {};  ///< "cpu" or "node", by which the memory was asked for
  std::string gpu_type = {};    ///< the only one that was asked for
  std::string constraints = {};
  std::string submit_line = {};
  std::string script_options = {};  ///< the script's directives (jobscript::ScriptDirectives)
  std::string sluid = {};
  /// What jobstats keeps of the job in AdminComment, with "JS1:". Texts of more than kMaxJs1Bytes
  /// are not taken.
  std::string js1 = {};

  bool operator==(const SlurmDetails&) const = default;
};

/// The longest text of SlurmDetails that is stored, in bytes.
inline constexpr std::size_t kMaxDetailBytes = 1024;
inline constexpr std::size_t kMaxJs1Bytes = std::size_t{64} << 10U;

/// The comment of an administrator, if it is a summary of jobstats that holds data; else "".
std::string js1_of(std::string_view comment);

/// Seconds of a limit in minutes. Nothing if it is not a plausible limit.
std::optional<std::int64_t> limit_seconds(std::optional<std::int64_t> minutes);
/// Nothing for 0, which is reported where nothing measures, and for the numbers that SLURM uses for
/// "none": 0xfffffffffffffffe and others from 2^63 on.
std::optional<std::int64_t> consumed_energy(std::string_view text);
/// Parses ReqMem: "16G", or with older versions "4000Mc" and "16Gn", for each CPU and node.
std::optional<std::int64_t> parse_requested_memory(std::string_view text,
                                                   std::optional<std::int64_t> cpus,
                                                   std::int64_t nodes);

/// "cpu" of "4000Mc", "node" of "16Gn", else "".
std::string_view memory_per(std::string_view text);
/// "a100" of "gres/gpu:a100", if the text is a name; else "".
std::string_view gpu_type_of(std::string_view resource);

/// One run of a job, from sacct or from slurmrestd. Texts are as SLURM prints them.
struct SlurmJob {
  std::string id, partition, qos, account, group, user, submit_text, start_text, end_text, elapsed,
      exit_code, state, node_list, name, work_dir;
  std::int64_t gid = 0;
  std::int64_t uid = 0;
  std::optional<std::int64_t> submit_ms, start_ms, end_ms;  ///< epoch ms; absent: not known (yet)
  Allocation allocation;
  SlurmDetails details = {};
};

/// Milliseconds for which the job ran in the window. A job that ended before the window was
/// recorded late; its whole time counts, and the store adds what it has not counted yet
/// (ResourceManager). A job that ended exactly at the window's start counts 0, because sacct lists
/// it in the previous window as well.
std::int64_t active_ms(const SlurmJob& job, model::Window window);

/// Returns the job as it stood at the end of the window: a job that ended later is still running,
/// and one that started later is left out.
std::optional<model::Unit> to_unit(const SlurmJob& job, model::Window window, const TimeZone& zone);

}  // namespace ceems::ingest
