#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/claim/evidence.h"
#include "exporter/gpu/claim/gres_conf.h"
#include "exporter/gpu/device.h"
#include "exporter/gpu/inventory/inventory.h"
#include "host/paths.h"

namespace ceems::exporter::gpu {

/// One entry of --collector.slurm.gpu-order-map: SLURM's index of a GPU or of an instance.
struct OrderEntry {
  std::string slurm_index;
  std::uint64_t position = 0;                      ///< Device::position
  std::optional<std::uint64_t> gpu_instance = {};  ///< Instance::gpu_instance
};

/// Parses "0:0,1:3.5": comma-separated entries of SLURM index, ":", position, and optionally "."
/// with the id of an instance. Entries of any other form are skipped.
std::vector<OrderEntry> parse_order_map(std::string_view text);

/// Sets the SLURM index of the devices and instances in `order`. The others keep theirs.
void apply_order_map(const std::vector<OrderEntry>& order, std::vector<Device>& devices);

/// Indexes of GPUs by the numbers that SLURM gives them. SLURM numbers device files, as gres.conf
/// lists them and AutoDetect finds them. On some servers their order is not that of NVML. Empty if
/// the numbers are the indexes, or if it is not known: GPUs are split, the driver does not say its
/// minors.
using FileNumbers = std::map<std::string, std::string>;
FileNumbers indexes_by_file(const std::vector<Device>& devices);

/// The GPUs that the environment of a job's process names.
struct JobEnvironment {
  std::vector<std::string> job_gpus;   ///< SLURM_JOB_GPUS
  std::vector<std::string> step_gpus;  ///< SLURM_STEP_GPUS
  /// CUDA_VISIBLE_DEVICES, if all its entries are UUIDs: GPU-UUID, MIG-UUID, MIG-GPU-UUID/GI/CI.
  std::vector<std::string> uuids = {};
  /// SLURM_SHARDS_ON_NODE or CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, whichever comes later. Nothing if
  /// there is neither, 0 if it is not a plain number.
  std::optional<std::uint64_t> shares = {};
};

/// Nothing unless SLURM_JOB_ID is `job`. Text after the last NUL is incomplete and ignored.
std::optional<JobEnvironment> parse_job_environment(std::string_view environ, std::string_view job);

/// A file of the map directory: indexes of GPUs, separated by commas or white space, and at most
/// one word "shares=N". Nothing if the file has anything else.
struct GpuMapFile {
  std::vector<std::string> ordinals;
  std::uint64_t shares = 0;
};
std::optional<GpuMapFile> parse_gpu_map_file(std::string_view text);

struct SlurmClaimOptions {
  host::Paths paths;
  bool unified = true;  ///< cgroup v2, where the device cgroup cannot be read
  std::string map_directory = "/run/ceems/slurm-gpu-map";
  bool trusted_only = false;  ///< --collector.slurm.gpu-evidence=trusted
  bool with_shares = false;   ///< shards or MPS are configured: also look for Claim::shares
  std::vector<OrderEntry> order = {};
  std::vector<MigMinor> mig_minors = {};
  std::shared_ptr<const ProcessList> processes = {};  ///< may be null
  std::uint32_t trusted_uid = 0;  ///< another user who may own the files, for tests
};

/// Determines which GPUs jobs hold, by the best evidence available:
/// 1. <map_directory>/<job> or <node>.<job>, written by a prolog. The file and its directory must
///    be owned by root and writable by no other user.
/// 2. The device cgroup (v1), if it restricts anything.
/// 3. GPUs on which the vendor's library has listed a process of the job. From then on they are the
///    job's, in addition to GPUs from the next two sources.
/// 4. The environment of slurmstepd.
/// 5. The environment of the job's own processes, which its user controls. It is read once, from
///    the oldest process that has it when the job is first seen with one. Later processes change
///    nothing. Its numbers are of device files (indexes_by_file()), unless there is an order
///    map, or CUDA_VISIBLE_DEVICES has as many UUIDs (MIG). Where the job's processes are on other
///    GPUs only, the numbers are wrong and do not count. It never assigns a GPU that the device
///    cgroup denies (an instance of a denied GPU is denied, too), nor one that another job holds
///    with better evidence (shares.h).
std::unique_ptr<ClaimSource> make_slurm_claims(SlurmClaimOptions options,
                                               std::shared_ptr<Inventory> inventory);

}  // namespace ceems::exporter::gpu
