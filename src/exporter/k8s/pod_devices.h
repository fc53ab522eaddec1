#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/k8s/api_client.h"
#include "exporter/k8s/pod_resources.h"
#include "exporter/source/on_change.h"

namespace ceems::exporter::k8s {

/// Joins the kubelet's answer, which has no UIDs, to the pods of the API server: by namespace and
/// name, otherwise by name alone (the last one of several pods). Entries without a pod are left
/// out.
/// "::" and the text after it (replicas of a shared GPU) are removed from device ids, which become
/// lower case. Devices of resource claims get the ids that `slices` has for them.
std::vector<gpu::Claim> join_pods(const std::vector<PodDevices>& devices,
                                  const std::vector<Pod>& pods,
                                  const SliceDevices& slices = {});

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
