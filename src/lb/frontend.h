#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "gate/gate.h"
#include "lb/backends.h"
#include "lb/request_metrics.h"
#include "net/http.h"

namespace ceems::lb {

/// What the requests of one type are decided and passed on by; replaced as a whole on reload.
struct FrontendSnapshot {
  /// Null owners: there is no access control.
  FrontendSnapshot(gate::BackendType type,
                   gate::GateRules rules,
                   std::shared_ptr<gate::Owners> asked,
                   std::shared_ptr<const Backends> passed_to);

  /// Of a request. What the gate checks is held in memory, unpacked and read several times.
  static constexpr std::size_t kMaxCheckedBodyBytes = std::size_t{1} << 20U;
  static constexpr std::size_t kMaxBodyBytes = std::size_t{32} << 20U;
  std::size_t max_body_bytes;

  std::shared_ptr<gate::Owners> owners;  ///< asked by the gate
  gate::Gate gate;
  std::shared_ptr<const Backends> backends;  ///< requests under way hold them as well
};

/// One listener: decides each request and has it relayed. Safe for concurrent use.
class Frontend {
 public:
  /// `metrics` must outlive the frontend.
  Frontend(gate::BackendType type, RequestMetrics& metrics)
      : type_(type), metrics_(metrics), type_metrics_(metrics.of(type)) {}

  /// New requests go by this from now on; those under way end as they began.
  void publish(std::shared_ptr<const FrontendSnapshot> snapshot);
  /// Null before the first publish().
  [[nodiscard]] std::shared_ptr<const FrontendSnapshot> snapshot() const;

  /// For net::Server. Without a cluster header /metrics and /-/healthy are this program's own.
  void handle(const net::Request& request, net::Response& response) const;

  /// For net::ServerOptions::inline_handler: has a request relayed if that is decided without
  /// waiting.
  bool handle_inline(const net::Request& request, net::Response& response) const;

  [[nodiscard]] gate::BackendType type() const { return type_; }

 private:
  bool answer_own_page(const net::Request& request,
                       const Backends& backends,
                       net::Response& response) const;
  void relay(const net::Request& request,
             const gate::Decision& decision,
             const FrontendSnapshot& snapshot,
             const std::vector<const Backend*>& picked,
             net::Response& response) const;

  gate::BackendType type_;
  RequestMetrics& metrics_;
  TypeMetrics& type_metrics_;
  mutable Mutex mutex_;
  std::shared_ptr<const FrontendSnapshot> snapshot_ CEEMS_GUARDED_BY(mutex_);
};

/// Labels that the servers of a type take out of their answers, for the gate's rules.
std::vector<std::string> hidden_labels(const Backends& backends);

}  // namespace ceems::lb
