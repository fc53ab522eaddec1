#pragma once

#include <memory>
#include <string>
#include <vector>

#include "audit/log.h"
#include "base/mutex.h"
#include "gate/gate.h"
#include "lb/backends.h"
#include "lb/broken_texts.h"
#include "lb/request_metrics.h"
#include "net/http.h"

namespace ceems::lb {

/// What a frontend needs to decide requests and pass them on. A reload replaces all of it.
struct FrontendSnapshot {
  /// With null `unit_owners`, there is no access control.
  FrontendSnapshot(gate::BackendType type,
                   gate::GateRules rules,
                   std::shared_ptr<gate::Owners> unit_owners,
                   std::shared_ptr<const Backends> targets,
                   std::shared_ptr<audit::Log> audit_log = nullptr);

  /// Limits of a request body. A body that the gate checks is kept in memory, decompressed and read
  /// several times.
  static constexpr std::size_t kMaxCheckedBodyBytes = std::size_t{1} << 20U;
  static constexpr std::size_t kMaxBodyBytes = std::size_t{32} << 20U;
  std::size_t max_body_bytes;

  std::shared_ptr<gate::Owners> owners;  ///< used by the gate
  gate::Gate gate;
  std::shared_ptr<const Backends> backends;  ///< current requests hold them as well
  std::shared_ptr<audit::Log> audit;         ///< null: none
};

/// The requests of one listener: decides each and relays it. Safe for concurrent use.
class Frontend {
 public:
  /// `metrics` must outlive the frontend.
  Frontend(gate::BackendType type, RequestMetrics& metrics)
      : type_(type), metrics_(metrics), type_metrics_(metrics.of(type)) {}

  /// New requests use this snapshot from now on. Current requests keep theirs.
  void publish(std::shared_ptr<const FrontendSnapshot> snapshot);
  /// Null before the first publish().
  [[nodiscard]] std::shared_ptr<const FrontendSnapshot> snapshot() const;

  /// For net::Server. Requests for /metrics and /-/healthy without a cluster header are answered by
  /// this program.
  void handle(const net::Request& request, net::Response& response) const;

  /// For net::ServerOptions::inline_handler: relays a request if it can be decided without waiting.
  bool handle_inline(const net::Request& request, net::Response& response) const;

  /// For net::ServerOptions::needs_body: whether the gate could let a request with this header
  /// pass. Asks whether the user is an admin, so it may wait.
  [[nodiscard]] bool needs_body(const net::Request& request) const;

  [[nodiscard]] gate::BackendType type() const { return type_; }

 private:
  void refuse(const net::Request& request,
              const gate::ParsedRequest& parsed,
              const gate::Refusal& refusal,
              const FrontendSnapshot& now,
              net::Response& response) const;
  bool answer_own_page(const net::Request& request,
                       const Backends& backends,
                       net::Response& response) const;
  void relay(const net::Request& request,
             const gate::Decision& decision,
             const FrontendSnapshot& snapshot,
             const std::vector<const Backend*>& picked,
             std::string text,
             net::Response& response) const;

  gate::BackendType type_;
  RequestMetrics& metrics_;
  TypeMetrics& type_metrics_;
  mutable BrokenTexts broken_;
  mutable Mutex mutex_;
  std::shared_ptr<const FrontendSnapshot> snapshot_ CEEMS_GUARDED_BY(mutex_);
};

/// Whether this program itself answers a request, with its health or metrics.
bool is_own_page(const net::Request& request);
/// The user whom the client names, for whom a request waits; or the address of the client.
std::string user_of(const net::Request& request);

/// The request to send to one server. The path is appended to that of the server's URL, fields that
/// concern the client's connection are removed, and the configured credentials replace the
/// client's. Fails if a secret cannot be read.
Result<net::Relay::Attempt> attempt_for(const Backend& backend,
                                        const net::Request& request,
                                        const gate::Decision& decision);

/// The labels that are removed from the answers of these backends, for the gate's rules.
std::vector<std::string> hidden_labels(const Backends& backends);

}  // namespace ceems::lb
