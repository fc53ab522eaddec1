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

/// How "320.5G" is read: as 320 GiB, like CEEMS 0.10.2, or exactly.
enum class MemoryRule { kTruncated, kExact };

/// AllocTRES; 0 where absent.
struct Allocation {
  std::int64_t nodes = 0;
  std::int64_t cpus = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t gpus = 0;
  std::int64_t billing = 0;
};

/// Adds up trackable resources one by one; bounds keep products with times far from overflow.
class AllocationBuilder {
 public:
  /// A resource other than memory: "cpu", "node", "billing", "gres/gpu", "gres/gpu:a100".
  /// `gres/gpu` is the number of GPUs; without it the typed ones (MIG profiles too) are summed.
  /// Others, such as gres/gpumem, are left out.
  void add(std::string_view name, std::int64_t count);
  void add_memory(double bytes);
  [[nodiscard]] Allocation done() const;

 private:
  Allocation allocation_;
  std::optional<std::int64_t> all_gpus_;
  std::int64_t typed_gpus_ = 0;
};

/// "billing=80,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=320.5G,node=1". mem takes K, M, G, T, P, E as
/// powers of 1024; without a letter it is MiB. Elements that do not parse count as absent.
Allocation parse_alloc_tres(std::string_view text, MemoryRule rule);

/// The node names of a SLURM host list such as "n[08-11,15]-x,login1": names separated by commas;
/// brackets hold numbers and ranges, padded to the width of the range's first number; several
/// brackets expand left to right (hostlist expressions of scontrol(1)). kParse for anything else
/// and for more than 65536 names.
Result<std::vector<std::string>> expand_node_list(std::string_view text);

/// One start of one job, however it was read. Texts are as SLURM prints them.
struct SlurmJob {
  std::string id, partition, qos, account, group, user, submit_text, start_text, end_text, elapsed,
      exit_code, state, node_list, name, work_dir;
  std::int64_t gid = 0;
  std::int64_t uid = 0;
  std::optional<std::int64_t> submit_ms, start_ms, end_ms;  ///< epoch; absent: not known (yet)
  Allocation allocation;
};

/// Milliseconds that the job ran in the window. A job that ended before the window was recorded
/// late and counts in full; the store adds what it has not counted (ResourceManager). A job that
/// ended exactly at the window's start counts 0, because sacct lists it for the window before as
/// well.
std::int64_t active_ms(const SlurmJob& job, model::Window window);

/// The job as it stood at the end of the window: one that ended later is still running; nothing for
/// one that started later.
std::optional<model::Unit> to_unit(const SlurmJob& job, model::Window window, const TimeZone& zone);

}  // namespace ceems::ingest
