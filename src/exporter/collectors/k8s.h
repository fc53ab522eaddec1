#pragma once

#include <memory>
#include <string>

#include "exporter/collector.h"
#include "exporter/collectors/unit_flags.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

struct K8sOptions {
  bool pressure = false;
  std::string kubeconfig = {};  ///< file name; empty: in-cluster configuration
  std::string socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  // From the environment.
  std::string node_name = {};  ///< NODE_NAME; empty: the pods of the whole cluster are listed
  std::string service_host = {};
  std::string service_port = {};
};

/// The collector without its flags, for tests. Without an inventory it has no GPU series and
/// connects to nothing. Errors: the cgroup hierarchy does not exist, or the given kubeconfig is
/// invalid.
Result<std::unique_ptr<Collector>> make_k8s_collector(
    const CollectorContext& context,
    const CgroupFlags& cgroups,
    const SubCollectorSet& subs,
    const K8sOptions& options,
    const std::shared_ptr<gpu::Inventory>& inventory = nullptr);

}  // namespace ceems::exporter
