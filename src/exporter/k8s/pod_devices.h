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

/// Joins what the kubelet says, which knows no UIDs, to the pods of the API server: by namespace
/// and name, else by name alone (of several pods the one listed last). Entries without a pod are
/// left out. Device ids lose "::" and what follows (replicas of a shared GPU) and become lower
/// case.
std::vector<gpu::Claim> join_pods(const std::vector<PodDevices>& devices,
                                  const std::vector<Pod>& pods);

struct PodClaimOptions {
  /// Asks kubelet and API server. On a thread of its own; should end soon after the token stops.
  std::function<Result<std::vector<gpu::Claim>>(const std::stop_token&)> fetch;
  std::vector<os::Capability> capabilities = {};  ///< that `fetch` raises
  /// Age at which claims are fetched again though the pods are the same.
  std::chrono::milliseconds refresh = std::chrono::minutes(15);
  std::chrono::milliseconds pause_after_error{5000};
  /// How long a scrape with new pods waits for their devices, and how often the worker looks
  /// whether something is wanted.
  std::chrono::milliseconds patience{20};
  std::chrono::milliseconds period{1000};
  std::chrono::milliseconds first_wait{1500};  ///< how long the start waits for the first answer
};

/// The devices of pods: fetched by a worker when other pods are there than last time, and every 15
/// minutes. When that fails those of pods that are still there count on. Thread-safety as
/// ClaimSource.
class PodClaims final : public gpu::ClaimSource {
 public:
  /// `clock` outlives it.
  PodClaims(PodClaimOptions options, const Clock& clock);

  void start() override { source_.start(); }
  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    source_.wait_first(deadline);
  }
  /// kNoData while nothing was fetched so far; why is in the log.
  Result<std::vector<gpu::Claim>> claims(const UnitSnapshot& snapshot) override;
  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return options_.capabilities;
  }

 private:
  struct Fetched {
    std::uint64_t request = 0;  // the newest request that was there when fetching began
    std::shared_ptr<const std::vector<gpu::Claim>> claims;
  };

  Result<Fetched> read(const std::stop_token& stop);
  void request_if_due(std::vector<std::string> uuids);

  const PodClaimOptions options_;
  const Clock& clock_;
  std::atomic<std::uint64_t> requested_ = 1;

  // Of the worker.
  Fetched done_;
  std::optional<Error> error_;
  std::uint64_t failed_request_ = 0;
  Clock::SteadyTime retry_at_{};

  // Of the thread of claims().
  std::vector<std::string> asked_for_;  // pods of the newest request
  bool waiting_ = true;                 // for its answer
  Clock::SteadyTime refreshed_{};
  std::shared_ptr<const std::vector<gpu::Claim>> claims_;

  SlowSource<Fetched> source_;  // last: its thread uses all of the above
};

}  // namespace ceems::exporter::k8s
