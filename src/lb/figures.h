#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_annotations.h"
#include "gate/gate.h"
#include "lb/backends.h"
#include "metrics/histogram.h"
#include "metrics/process.h"
#include "metrics/sink.h"
#include "net/relay/relay.h"

namespace ceems::lb {

/// What the load balancer says about itself (docs/lb/metrics.md). Safe for concurrent use.
class Figures {
 public:
  Figures();

  /// A request of this kind was let through or refused for `reason`: the reason of a gate::Refusal,
  /// or "allowed", "admin", "no_backend". Reasons are few and fixed.
  void count_decision(gate::BackendType type, std::string_view reason);
  void count_answer(gate::BackendType type, const net::RelayEnd& end, double seconds);
  void observe_decision(gate::BackendType type, double seconds);

  /// The page in the text format 0.0.4; `backends` are all servers with their clusters.
  struct Server {
    gate::BackendType type;
    std::string cluster;
    const net::Upstream* upstream;
  };
  [[nodiscard]] std::string page(const std::vector<Server>& servers);

 private:
  static constexpr std::size_t kClasses = 6;  // 0: no answer at all

  struct OfType {
    OfType();
    metrics::Histogram decisions;
    metrics::Histogram seconds;
    std::atomic<std::uint64_t> bytes = 0;
    std::atomic<std::uint64_t> broken = 0;
    std::array<std::atomic<std::uint64_t>, kClasses> answers{};
  };

  std::array<OfType, 2> types_;
  std::mutex mutex_;
  std::map<std::pair<gate::BackendType, std::string>, std::uint64_t, std::less<>> reasons_
      CEEMS_GUARDED_BY(mutex_);
  metrics::ProcessMetrics process_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::lb
