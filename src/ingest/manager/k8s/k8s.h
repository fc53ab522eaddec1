#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/time/time_zone.h"
#include "config/yaml.h"
#include "ingest/manager/k8s/units.h"
#include "ingest/manager/manager.h"
#include "kube/objects.h"
#include "kube/pod_source.h"

namespace ceems::ingest {

/// The sources of the manager's data.
struct K8sSources {
  std::unique_ptr<kube::PodSource> pods;
  /// Reads all role bindings of the cluster. If empty, they are not requested.
  std::function<Result<kube::RoleBindingList>(const std::stop_token&)> role_bindings = {};
  /// Reads the devices of all resource claims. If empty, they are not requested.
  std::function<Result<std::vector<kube::ClaimedDevices>>(const std::stop_token&)> resource_claims =
      {};
  /// Reads the users file; kNotFound if an optional file does not exist. Empty: none is
  /// configured.
  std::function<Result<config::Node>()> users_file = {};
  bool users_file_optional = false;
};

/// Creates the manager "k8s" of one cluster. A window waits up to `patience` for a complete view of
/// the pods; otherwise it fails and stays due. `clock` must outlive the manager.
std::unique_ptr<ResourceManager> make_k8s(std::string cluster_id,
                                          K8sUnitOptions options,
                                          K8sSources sources,
                                          TimeZone zone,
                                          const Clock& clock,
                                          std::chrono::milliseconds patience);

}  // namespace ceems::ingest
