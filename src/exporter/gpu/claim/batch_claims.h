#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/claim/gres_conf.h"
#include "exporter/gpu/inventory/inventory.h"
#include "host/paths.h"

namespace ceems::exporter::gpu {

/// The entries of CUDA_VISIBLE_DEVICES in an environment in which `variable` is `job`: indexes of
/// GPUs, GPU-UUID, MIG-UUID or MIG-GPU-UUID/GI/CI. Nothing if it is not an environment of the job,
/// or names no GPUs. Text after the last NUL is incomplete and ignored.
std::optional<std::vector<std::string>> parse_visible_devices(std::string_view environ,
                                                              std::string_view variable,
                                                              std::string_view job);

/// The indexes of the GPUs and instances that entries of CUDA_VISIBLE_DEVICES name, each once.
/// Entries that name nothing here are ignored.
std::vector<std::string> visible_indexes(const std::vector<std::string>& entries,
                                         const std::vector<Device>& devices);

/// The GPUs of one job as its batch system says.
struct ManagerGpus {
  std::vector<unsigned> minors = {};  ///< device minors of whole GPUs
  bool instances = false;             ///< it also has parts of GPUs, which are not named
};

struct BatchClaimOptions {
  std::string collector;  ///< for the log
  host::Paths paths;
  bool unified = true;       ///< cgroup v2, where the device cgroup cannot be read
  std::string job_variable;  ///< variable that has the job's id in the environment of its processes
  bool trusted_only = false;  ///< never use the environment
  std::vector<MigMinor> mig_minors = {};
  std::shared_ptr<const ProcessList> processes = {};  ///< may be null
  /// Asks the batch system. Nothing if it does not know the job. Empty for a batch system that
  /// cannot be asked: only then are whole GPUs taken from the environment.
  std::function<std::optional<ManagerGpus>(const Unit&)> manager_gpus = {};
};

/// Determines which GPUs the jobs of LSF or OpenPBS hold, by the best evidence available:
/// 1. What the batch system says. It is final unless the job has instances.
/// 2. The device cgroup (v1), if it restricts anything.
/// 3. GPUs on which the vendor's library has listed a process of the job.
/// 4. CUDA_VISIBLE_DEVICES in the environment of the oldest process of the job that has it. The
///    job's user controls it, so it is read once, and never assigns a GPU that the device cgroup
///    denies or that another job holds with better evidence.
/// Jobs on the same GPU or instance share it evenly.
std::unique_ptr<ClaimSource> make_batch_claims(BatchClaimOptions options,
                                               std::shared_ptr<Inventory> inventory);

}  // namespace ceems::exporter::gpu
