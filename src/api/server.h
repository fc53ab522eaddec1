#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "access/policy.h"
#include "advice/rules_in_use.h"
#include "api/accounting/options.h"
#include "api/answer/cors.h"
#include "api/answer/entity_tag.h"
#include "api/answer/health.h"
#include "api/answer/request_metrics.h"
#include "api/answer/stream_slots.h"
#include "api/answer/unknown_users.h"
#include "api/answer/usage_cache.h"
#include "api/documentation/openapi.h"
#include "api/endpoints/endpoint.h"
#include "api/login/sign_in.h"
#include "api/login/tokens.h"
#include "api/rate_limit.h"
#include "api/site.h"
#include "api/tsdb/series.h"
#include "audit/log.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/protocol.h"
#include "net/http.h"
#include "store/feedback.h"
#include "store/reader.h"

namespace ceems::api {

class DigestMaker;
class FeedbackBox;
class JobCheck;
class KeptStatements;
class MeasurementSource;
class MutePage;
class ProfileSource;
class ReportMaker;

struct ApiOptions {
  std::string route_prefix = "/";
  std::string cors_origin = ".*";
  std::vector<std::string> user_headers = {std::string(model::kUserHeader)};
  long max_requests = 0;                            ///< per minute and client; 0: no limit
  std::vector<std::string> trusted_proxies = {};    ///< addresses or ranges
  std::vector<std::string> trusted_ip_prefix = {};  ///< without the limit: addresses or ranges
  std::int64_t max_period_ms = 0;
  access::Roles roles = {};
  login::SignIn* sign_in = nullptr;  ///< outlives the server; null: a header names the user
  login::Tokens* tokens = nullptr;   ///< outlives the server; null: personal tokens are off
  /// Opens the writer of what people say of suggestions.
  std::function<Result<std::unique_ptr<store::FeedbackWriter>>()> open_feedback = {};
  audit::Log* audit = nullptr;  ///< outlives the server; null: none
  SiteOptions site = {};
  /// Behind the suggestions of reports; never null.
  std::shared_ptr<const advice::RulesInUse> rules = std::make_shared<advice::RulesInUse>();
  MeasurementSource* measurements = nullptr;  ///< outlives the server; null: none
  Fleet* fleet = nullptr;                     ///< outlives the server; null: no cluster has a TSDB
  ProfileSource* profiles = nullptr;  ///< outlives the server; null: no cluster has profiles
  MutePage* mute_page = nullptr;      ///< outlives the server; null: none
  AccountingOptions accounting = {};
  std::string external_url = {};  ///< public URL of the server, for the OpenAPI document
  std::chrono::milliseconds health_wait{1000};  ///< how long /health waits for the database
};

/// Answers HTTP requests: routing, identity, access and the endpoints of docs/api/endpoints.md.
/// Safe for concurrent use.
class ApiServer {
 public:
  /// `reader`, `series` (may be null), `registry` and `clock` must outlive the server. The server
  /// adds its metrics to `registry` and serves all of it at /metrics. kInvalidArgument for an
  /// invalid route prefix, origin pattern or range of addresses.
  static Result<std::unique_ptr<ApiServer>> create(ApiOptions options,
                                                   store::Reader& reader,
                                                   SeriesSource* series,
                                                   metrics::Registry& registry,
                                                   const Clock& clock);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;
  void handle(const net::Request& request, net::Response& response);
  /// Makes reports, for mails. Lives as long as the server.
  [[nodiscard]] const ReportMaker& reports() const { return *reports_; }
  [[nodiscard]] const Accounting& accounting() const { return *accounting_; }
  /// Makes digests of months, for mails. Lives as long as the server.
  [[nodiscard]] const DigestMaker& digests() const { return *digests_; }
  /// Whether the handler of the request may wait for a TSDB. While one hangs, such requests must
  /// not occupy the threads that answer all others.
  [[nodiscard]] bool waits(const net::Request& request) const;
  /// Whether the answer depends on the body of a request with this header: that of a form, or of an
  /// endpoint that takes one.
  [[nodiscard]] bool needs_body(const net::Request& request) const;

 private:
  ApiServer(ApiOptions options,
            Cors cors,
            RateLimiter::Peers peers,
            store::Reader& reader,
            SeriesSource* series,
            metrics::Registry& registry,
            const Clock& clock);

  struct Target;
  [[nodiscard]] Target find_target(const net::Request& request) const;
  void answer(const Target& target, const net::Request& request, net::Response& response);
  /// The caller of a request; the identity without a name if no user is logged in.
  Result<access::Identity> identify(const net::Request& request, net::Response& response);
  /// Identifies a request that has a personal token. False after answering one that is refused.
  [[nodiscard]] bool identify_by_token(const Endpoint& endpoint, Call& call);
  void call_endpoint(const Endpoint& endpoint,
                     const net::Request& request,
                     net::Response& response);
  void serve_endpoint(const Endpoint& endpoint, Call& call);
  void answer_anonymous(const net::Request& request, net::Response& response);
  /// Reads window and page from the parameters into `call`.
  [[nodiscard]] Result<> read_params(const Endpoint& endpoint, Call& call) const;
  [[nodiscard]] std::string tag_of(const Endpoint& endpoint, const Call& call) const;

  ApiOptions options_;
  Cors cors_;
  RateLimiter limiter_;
  UsageCache usage_cache_;
  StreamSlots streams_;
  EntityTags tags_;
  UnknownUsers unknown_users_;
  metrics::Registry& registry_;
  RequestMetrics metrics_;
  HealthProbe health_;
  Document document_;
  std::unique_ptr<Accounting> accounting_;
  std::unique_ptr<ReportMaker> reports_;
  std::unique_ptr<DigestMaker> digests_;
  std::unique_ptr<JobCheck> checks_;
  std::unique_ptr<FeedbackBox> feedback_;
  std::unique_ptr<NodeJudge> nodes_;
  std::unique_ptr<KeptStatements> statements_;
  Services services_;
};

}  // namespace ceems::api
