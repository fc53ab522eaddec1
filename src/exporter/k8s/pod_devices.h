#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/k8s/api_client.h"
#include "exporter/k8s/pod_resources.h"
#include "exporter/source/slow_source.h"

namespace ceems::exporter::k8s {

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
  /// Age at which claims are fetched again for the same pods.
  std::chrono::milliseconds refresh = std::chrono::minutes(15);
  std::chrono::milliseconds pause_after_error{5000};
  /// How long a scrape with new pods waits for their devices, and how often the thread checks for
  /// requests.
  std::chrono::milliseconds patience{20};
  std::chrono::milliseconds period{1000};
  std::chrono::milliseconds first_wait{1500};  ///< how long the start waits for the first answer
};

/// The devices of pods. A thread fetches them when the pods have changed, and every 15 minutes. If
/// that fails, those of pods that still exist are kept. For thread-safety see ClaimSource.
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
  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return options_.capabilities;
  }

 private:
  struct Fetched {
    std::uint64_t request = 0;  // the newest request when fetching began
    std::shared_ptr<const std::vector<gpu::Claim>> claims;
  };

  Result<Fetched> read(const std::stop_token& stop);
  void request_if_due(std::vector<std::string> uuids);

  const PodClaimOptions options_;
  const Clock& clock_;
  std::atomic<std::uint64_t> requested_ = 1;

  // Used by the thread only.
  Fetched done_;
  std::optional<Error> error_;
  std::uint64_t failed_request_ = 0;
  Clock::SteadyTime retry_at_{};

  // Used by the caller of claims() only.
  std::vector<std::string> requested_pods_;  // pods of the newest request
  bool waiting_ = true;                      // for the answer to it
  Clock::SteadyTime refreshed_{};
  std::shared_ptr<const std::vector<gpu::Claim>> claims_;

  SlowSource<Fetched> source_;  // the last member: its thread uses all of the above
};

}  // namespace ceems::exporter::k8s
