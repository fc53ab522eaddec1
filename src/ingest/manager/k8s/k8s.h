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

/// Where the manager gets everything from.
struct K8sSources {
  std::unique_ptr<kube::PodSource> pods;
  /// All role bindings of the cluster. Empty: not asked for.
  std::function<Result<kube::RoleBindingList>(const std::stop_token&)> role_bindings = {};
  /// The users file; kNotFound where there need not be one. Empty: there is none.
  std::function<Result<config::Node>()> users_file = {};
  bool users_file_optional = false;
};

/// The manager "k8s" of one cluster. A window waits up to `patience` for a complete view of the
/// pods; without one it fails, and so stays to be fetched. `clock` outlives it.
std::unique_ptr<ResourceManager> make_k8s(std::string cluster_id,
                                          K8sUnitOptions options,
                                          K8sSources sources,
                                          TimeZone zone,
                                          const Clock& clock,
                                          std::chrono::milliseconds patience);

}  // namespace ceems::ingest
