#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/k8s/kubelet_client.h"
#include "exporter/source/on_change.h"
#include "kube/kubeconfig.h"

namespace ceems::exporter::k8s {

/// The identity of a pod.
struct Pod {
  std::string name_space;
  std::string name;
  std::string uid;
};

/// One page of a list of pods.
struct PodPage {
  std::vector<Pod> pods;
  std::string next;  ///< token for the next page; empty on the last one
};

/// Maximum size of a page. 500 pods without managed fields have about 5 MiB.
inline constexpr std::size_t kMaxPodPage = std::size_t{32} << 20U;

/// Reads a PodList, or a PartialObjectMetadataList of pods, in JSON. Items without name or UID are
/// left out. Errors: kParse.
Result<PodPage> parse_pod_page(std::string_view json_text);

/// GET /api/v1/pods: the pods of `node`, or of the whole cluster if that is empty. Only their
/// metadata is requested. Files of `access` are read with CAP_DAC_READ_SEARCH if needed. Errors
/// name the server, but never credentials.
Result<std::vector<Pod>> list_pods(const kube::ApiAccess& access,
                                   const std::string& node,
                                   std::chrono::milliseconds timeout,
                                   const std::stop_token& stop);

/// Reads a file with secrets, with CAP_DAC_READ_SEARCH if needed.
Result<std::string> read_privileged(const std::string& path);

/// Joins the kubelet's answer, which has no UIDs, to the pods of the API server: by namespace and
/// name, otherwise by name alone (the last one of several pods). Entries without a pod are left
/// out.
/// "::" and the text after it (replicas of a shared GPU) are removed from device ids, which become
/// lower case.
std::vector<gpu::Claim> join_pods(const std::vector<PodDevices>& devices,
                                  const std::vector<Pod>& pods);

struct PodClaimOptions {
  /// Queries the kubelet and the API server. Called in a separate thread; must end soon after the
  /// token is stopped.
  std::function<Result<std::vector<gpu::Claim>>(const std::stop_token&)> fetch;
  std::vector<os::Capability> capabilities = {};  ///< capabilities that `fetch` raises
  OnChangeTimes times = {};
};

/// The devices of pods (see OnChange). If they cannot be fetched, devices of pods that still exist
/// are kept. For thread-safety see ClaimSource.
class PodClaims final : public gpu::ClaimSource {
 public:
  /// `clock` must outlive it.
  PodClaims(PodClaimOptions options, const Clock& clock);

  void start() override { source_.start(); }
  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    source_.wait_first(deadline);
  }
  /// kNoData until the first answer; the reason is in the log.
  Result<std::vector<gpu::Claim>> claims(const UnitSnapshot& snapshot) override;
  [[nodiscard]] std::vector<os::Capability> capabilities() const override { return capabilities_; }

 private:
  const std::vector<os::Capability> capabilities_;
  OnChange<std::vector<gpu::Claim>> source_;
};

}  // namespace ceems::exporter::k8s
