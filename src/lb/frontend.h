#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/thread_annotations.h"
#include "gate/gate.h"
#include "lb/backends.h"
#include "lb/figures.h"
#include "net/http.h"

namespace ceems::lb {

/// What requests of one kind are decided and passed on by; replaced as a whole on reload.
struct FrontendState {
  FrontendState(gate::BackendType type, gate::GateRules rules, gate::Owners* asked)
      : max_body_bytes(asked == nullptr ? kMaxBodyBytes : kMaxCheckedBodyBytes),
        gate(type, std::move(rules), asked) {}

  /// Of a request. What the gate checks is held, unpacked and read several times.
  static constexpr std::size_t kMaxCheckedBodyBytes = std::size_t{1} << 20U;
  static constexpr std::size_t kMaxBodyBytes = std::size_t{32} << 20U;
  std::size_t max_body_bytes;

  std::shared_ptr<gate::Owners> owners;  ///< keeps alive what the gate asks; may be null
  gate::Gate gate;
  /// Requests under way hold them as well.
  std::shared_ptr<const Backends> backends;
};

/// One listener: decides each request and has it relayed. Safe for concurrent use.
class Frontend {
 public:
  /// `figures` must outlive the frontend.
  Frontend(gate::BackendType type, Figures& figures) : type_(type), figures_(&figures) {}

  /// From now on requests go by this; those under way end as they began.
  void set_state(std::shared_ptr<const FrontendState> state);
  [[nodiscard]] std::shared_ptr<const FrontendState> state() const;

  /// For net::Server. Without a cluster header /metrics and /-/healthy are this program's own.
  void handle(const net::Request& request, net::Response& response) const;

  /// For net::ServerOptions::inline_handler: what passes and can be told so without waiting.
  bool handle_inline(const net::Request& request, net::Response& response) const;

  [[nodiscard]] gate::BackendType type() const { return type_; }

 private:
  void pass_on(const net::Request& request,
               const gate::Decision& decision,
               const FrontendState& state,
               const std::vector<const Backend*>& chosen,
               net::Response& response) const;

  gate::BackendType type_;
  Figures* figures_;
  mutable std::mutex mutex_;
  std::shared_ptr<const FrontendState> state_ CEEMS_GUARDED_BY(mutex_);
};

/// Labels that the servers of a kind take out of their answers, for the gate's rules.
std::vector<std::string> hidden_labels(const Backends& backends);

}  // namespace ceems::lb
