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
  std::vector<std::string> gpu_resources = {"nvidia.com/gpu", "amd.com/gpu"};
  /// In the order of preference.
  std::vector<std::string> username_annotations = {"ceems.io/created-by"};
  std::vector<std::string> project_annotations = {};
  /// alloc_cpumemtime in MiB·s, as for the other managers; else in bytes·s, as in CEEMS 0.10.2.
  bool memory_time_in_mib = false;
};

struct PodOwner {
  std::string project;
  std::string user;
};
/// The project is the first of the project annotations, else the namespace; the user the first of
/// the user annotations, or "<project>:svc" where that is missing or names a service account.
PodOwner owner_of(const kube::Pod& pod, const K8sUnitOptions& options);

/// Whether the pod has held resources whose time counts; a pending pod has not.
bool has_started(const kube::Pod& pod);

/// The pod as it stood at the end of the window; nothing for one that was not there yet. Its time
/// runs from `counted_ms`, up to where earlier windows have counted it, or from its start.
std::optional<model::Unit> k8s_unit(const kube::StoredPod& stored,
                                    const K8sUnitOptions& options,
                                    model::Window window,
                                    std::int64_t counted_ms,
                                    const TimeZone& zone);

}  // namespace ceems::ingest
