#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/kubeconfig.h"

namespace ceems::exporter::k8s {

/// The identity of a pod.
struct Pod {
  std::string name_space;
  std::string name;
  std::string uid;              ///< by which the kubelet knows it
  std::string mirror_uid = {};  ///< its UID in the API server if that is another one
  std::string created = {};     ///< as the API server writes it: earlier texts are less
};

/// One page of a list of pods.
struct PodPage {
  std::vector<Pod> pods;
  std::string next;  ///< token for the next page; empty on the last one
};

/// Maximum size of a page. 500 pods without managed fields have about 5 MiB.
inline constexpr std::size_t kMaxPodPage = std::size_t{32} << 20U;

/// Reads a PodList, or a PartialObjectMetadataList of pods, in JSON. Items without name or UID are
/// left out. `node` is that of the pods; empty if it is not known. Errors: kParse.
Result<PodPage> parse_pod_page(std::string_view json_text, std::string_view node = {});

/// Of pods that claim to mirror the same static pod, lets the one that was created first do so.
void settle_mirrors(std::vector<Pod>& pods);

/// GET /api/v1/pods: the pods of `node`, or of the whole cluster if that is empty. Only their
/// metadata is requested. Files of `access` are read with CAP_DAC_READ_SEARCH if needed. Errors
/// name the server, but never credentials.
Result<std::vector<Pod>> list_pods(const kube::ApiAccess& access,
                                   const std::string& node,
                                   std::chrono::milliseconds timeout,
                                   const std::stop_token& stop);

/// The id of each device that the drivers of Dynamic Resource Allocation publish for a node, by
/// "DRIVER/POOL/DEVICE": its attribute `uuid`, else its PCI address.
using SliceDevices = std::map<std::string, std::string, std::less<>>;

/// Adds the devices of a ResourceSliceList of resource.k8s.io (v1, v1beta2 or v1beta1) in JSON.
/// Returns the token of the next page. Errors: kParse.
Result<std::string> parse_slice_page(std::string_view json_text, SliceDevices& devices);

/// GET resourceslices of resource.k8s.io; none where the API server does not have them.
Result<SliceDevices> list_slice_devices(const kube::ApiAccess& access,
                                        const std::string& node,
                                        std::chrono::milliseconds timeout,
                                        const std::stop_token& stop);

/// Reads a file with secrets, with CAP_DAC_READ_SEARCH if needed.
Result<std::string> read_privileged(const std::string& path);

}  // namespace ceems::exporter::k8s
