#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time/time_zone.h"
#include "kube/pod_store.h"
#include "model/unit.h"

namespace ceems::ingest {

struct K8sUnitOptions {
  /// Resources of containers, and drivers of resource claims.
  std::vector<std::string> gpu_resources = {"nvidia.com/gpu", "amd.com/gpu", "gpu.nvidia.com",
                                            "gpu.amd.com"};
  /// In order of preference.
  std::vector<std::string> username_annotations = {"ceems.io/created-by"};
  std::vector<std::string> project_annotations = {};
  /// alloc_cpumemtime in MiB·s, as for the other managers; otherwise in bytes·s, as in CEEMS
  /// 0.10.2.
  bool memory_time_in_mib = false;
  /// The request of a container counts where it has no limit. Otherwise it counts as nothing, as in
  /// CEEMS 0.10.2.
  bool requests_without_limits = false;
};

struct PodOwner {
  std::string project;
  std::string user;
};
/// The project is the first of the project annotations, otherwise the namespace. The user is the
/// first of the user annotations, or "<project>:svc" if there is none or it names a service
/// account.
PodOwner owner_of(const kube::Pod& pod, const K8sUnitOptions& options);

/// Whether the pod has held resources whose time counts; a pending pod has not.
bool has_started(const kube::Pod& pod);

/// Returns the pod as it stood at the end of the window, or nothing if it did not exist yet. Its
/// time counts from `counted_ms`, the time up to which earlier windows have counted it, or from its
/// start if that is later.
std::optional<model::Unit> k8s_unit(const kube::StoredPod& stored,
                                    const K8sUnitOptions& options,
                                    model::Window window,
                                    std::int64_t counted_ms,
                                    const TimeZone& zone);

}  // namespace ceems::ingest
