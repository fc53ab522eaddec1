#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::exporter::k8s {

/// Devices that the kubelet assigned to the containers of one pod.
struct PodDevices {
  std::string name;
  std::string name_space;
  std::vector<std::string> device_ids =
      {};  ///< of all resources, in order, including repeated ones
  /// Devices of resource claims (Dynamic Resource Allocation) as "DRIVER/POOL/DEVICE".
  std::vector<std::string> claimed = {};
};

/// Decodes a v1.ListPodResourcesResponse (protocol buffers; k8s.io/kubelet
/// pkg/apis/podresources/v1/api.proto). Leaves out pods without devices and skips unused fields.
/// kParse: not such a message, or one with more pods or devices than any node has.
Result<std::vector<PodDevices>> parse_pod_resources(std::string_view message);

}  // namespace ceems::exporter::k8s
