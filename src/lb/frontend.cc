#include "lb/frontend.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "lb/answer_filter.h"
#include "model/protocol.h"

namespace ceems::lb {
namespace {

using std::chrono::steady_clock;

constexpr std::string_view kHealthy = "CEEMS LB Server is healthy";
constexpr std::string_view kHealthPath = "/-/healthy";
constexpr std::string_view kMetricsPath = "/metrics";

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

/// Pyroscope's clients read errors of the Connect protocol only.
void answer_refusal(const gate::Refusal& refusal, bool to_connect, net::Response& response) {
  response.status = refusal.status;
  response.set_header("Content-Type", "application/json");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.body = to_connect ? refusal.connect_body() : refusal.body();
}

gate::Refusal ignored_matchers() {
  return {.message =
              "the server ignores the matchers of this call, has no profiles of the last 30 days, "
              "or did not answer",
          .reason = "matchers"};
}

/// Grafana's plugin for Pyroscope asks for the settings of the tenant, and shows an error without
/// an answer. They are not for users.
bool is_settings_call(gate::BackendType type, const net::Request& request) {
  return type == gate::BackendType::kProfiles && request.method == "POST" &&
         request.path.ends_with("/settings.v1.SettingsService/Get");
}

gate::Refusal breaks_servers() {
  return {.status = 503,
          .error_type = "unavailable",
          .message =
              "servers closed the connection twice instead of answering this query: it is "
              "refused for 5 minutes",
          .reason = "breaks_servers"};
}

std::string_view value_of(const net::Headers& headers, std::string_view name) {
  const std::string* const text = net::find_header(headers, name);
  return text == nullptr ? std::string_view() : *text;
}

/// An empty message in the encoding of the request.
void answer_no_settings(const net::Request& request, net::Response& response) {
  const std::string_view type = value_of(request.headers, "Content-Type");
  const bool json = !type.starts_with("application/proto");
  response.set_header("Content-Type", json ? "application/json" : std::string(type));
  response.body = json ? "{}" : "";
}

gate::ParsedRequest parsed_request(const net::Request& request, std::string_view body) {
  return gate::ParsedRequest({.method = request.method,
                              .target = request.target,
                              .content_type = value_of(request.headers, "Content-Type"),
                              .content_encoding = value_of(request.headers, "Content-Encoding"),
                              .body = body});
}

// The audit of the load balancer (docs/audit.md). A null log does nothing. Other parameters than
// queries may be anything and are not for the log.

void audit_denial(audit::Log* log,
                  const net::Request& request,
                  const gate::ParsedRequest& parsed,
                  const gate::Refusal& refusal) {
  if (log == nullptr) {
    return;
  }
  const std::string_view cluster = value_of(request.headers, model::kClusterHeader);
  std::vector<std::string> clusters(cluster.empty() ? 0 : 1, std::string(cluster));
  log->write({.what = audit::What::kDenied,
              .user = value_of(request.headers, model::kUserHeader),
              .request = &request,
              .status = refusal.status,
              .reason = refusal.reason,
              .selected = {{"cluster_id", std::move(clusters)}, {"query", parsed.queries()}}});
}

/// A request that passed because its user is an admin. Reads of a user's own units and of units of
/// their projects leave no line, nor do requests without access control.
void audit_read(audit::Log* log,
                const net::Request& request,
                const gate::ParsedRequest& parsed,
                const gate::Decision& decision) {
  constexpr int kOk = 200;
  if (log == nullptr || !decision.admin || decision.user.empty()) {
    return;
  }
  log->write({.what = audit::What::kRead,
              .user = decision.user,
              .role = "admin",
              .request = &request,
              .status = kOk,
              .selected = {{"cluster_id", {decision.cluster}}, {"query", parsed.queries()}}});
}

/// Whether a POST request of an admin changes nothing at the server.
bool only_reads(gate::BackendType type, std::string_view path) {
  constexpr std::array<std::string_view, 5> kReading = {"query", "query_range", "query_exemplars",
                                                        "series", "labels"};
  return type == gate::BackendType::kProfiles
             ? path.contains("/querier.v1.QuerierService/")
             : std::ranges::find(kReading, endpoint_of(path).name) != kReading.end();
}

/// Whether an admin asks for the health of this program.
bool is_admin_health(const gate::Decision& decision, const net::Request& request) {
  return decision.admin && request.path == "/health";
}

/// Appends path and query to the backend's URL.
std::string target_of(const Backend& backend, std::string_view path, std::string_view query) {
  std::string target;
  target.reserve(backend.base_path.size() + path.size() + backend.base_query.size() + query.size() +
                 2);
  target.append(backend.base_path).append(path);
  char mark = '?';
  for (const std::string_view part : {std::string_view(backend.base_query), query}) {
    if (!part.empty()) {
      target += mark;
      target += part;
      mark = '&';
    }
  }
  return target;
}

/// Header fields that are kept when the request of a user is rewritten. None of them may make a
/// backend choose other data (a tenant, a cookie, another method).
bool passes_for_users(std::string_view low) {
  constexpr std::array<std::string_view, 14> kKnown{"accept",
                                                    "accept-encoding",
                                                    "accept-language",
                                                    "cache-control",
                                                    "pragma",
                                                    "origin",
                                                    "referer",
                                                    "traceparent",
                                                    "tracestate",
                                                    "x-request-id",
                                                    "connect-protocol-version",
                                                    "connect-timeout-ms",
                                                    "x-forwarded-proto",
                                                    "x-ceems-cluster-id"};
  constexpr std::array<std::string_view, 5> kPrefixes{"x-grafana-", "x-dashboard-", "x-panel-",
                                                      "x-datasource-", "x-rule-"};
  return std::ranges::find(kKnown, low) != kKnown.end() ||
         std::ranges::any_of(kPrefixes,
                             [low](std::string_view prefix) { return low.starts_with(prefix); });
}

/// Header fields of the client that are never passed on: credentials and those that the relay or
/// this program sets.
bool is_never_passed(std::string_view low) {
  return low == "host" || low == "content-length" || low == "authorization" ||
         low == "user-agent" || low == "x-forwarded-for" || low == "x-ceems-admin-user" ||
         low == "x-ceems-logged-user" || low == "x-http-method-override" ||
         (low.starts_with("x-ceems-") && low.ends_with("-token"));  // model/protocol.h
}

/// The path of a target, not decoded, without a scheme and host before it.
std::string_view encoded_path(std::string_view target) {
  target = target.substr(0, target.find_first_of("?#"));
  if (const std::size_t scheme = target.find("://");
      !target.starts_with('/') && scheme != std::string_view::npos) {
    const std::size_t slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  return target;
}

/// The value of Host from the URL of the server, without the port if it is the default.
std::string own_host(const net::Upstream& server) {
  const net::UpstreamOptions& options = server.options();
  if (!options.unix_socket.empty()) {
    return "localhost";
  }
  std::string name = server.address();
  if (options.port == (options.use_tls ? "443" : "80")) {
    name.resize(name.size() - options.port.size() - 1);
  }
  return name;
}

std::string forwarded_for(const net::Request& request) {
  std::string all;
  for (const auto& [name, value] : request.headers) {
    if (same_in_any_case(name, "x-forwarded-for")) {
      all += value + ", ";
    }
  }
  return all + request.remote_address;
}

/// What the log says about a request.
struct AccessLine {
  std::string user;
  std::string cluster;
  std::string path;
  std::string units;
};

/// Null if it is not logged.
std::shared_ptr<const AccessLine> access_line(const net::Request& request,
                                              const gate::Decision& decision) {
  if (!log::enabled(log::Level::kDebug)) {
    return nullptr;
  }
  return std::make_shared<const AccessLine>(
      AccessLine{.user = printable(decision.user, 100),
                 .cluster = decision.cluster,
                 .path = printable(request.path, 200),
                 .units = fmt::format("{}", fmt::join(decision.units, ","))});
}

/// A token that is sent to a server and must be replaced if the server refuses it.
struct SentToken {
  const Backend* backend;
  std::string authorization;
};

void drop_refused_tokens(const std::vector<SentToken>& tokens, const net::RelayEnd& end) {
  constexpr int kUnauthorized = 401;
  for (const SentToken& token : tokens) {
    if (end.status == kUnauthorized && token.backend->upstream.get() == end.upstream) {
      token.backend->client->refused({{"Authorization", token.authorization}});
    }
  }
}

/// Whether the client speaks the Connect protocol (https://connectrpc.com/docs/protocol/), whose
/// libraries name its version. Others get the errors of the reference, which knew protobuf only.
bool is_connect_call(const net::Request& request) {
  const std::string* type = net::find_header(request.headers, "Content-Type");
  const bool names_version =
      net::find_header(request.headers, "Connect-Protocol-Version") != nullptr;
  return gate::is_connect_path(request.path) &&
         (names_version || request.query.contains("connect=v1") ||
          (type != nullptr && type->starts_with("application/json")));
}

}  // namespace

FrontendSnapshot::FrontendSnapshot(gate::BackendType type,
                                   gate::GateRules rules,
                                   std::shared_ptr<gate::Owners> unit_owners,
                                   std::shared_ptr<const Backends> targets,
                                   std::shared_ptr<audit::Log> audit_log)
    : max_body_bytes(unit_owners == nullptr ? kMaxBodyBytes : kMaxCheckedBodyBytes),
      owners(std::move(unit_owners)),
      gate(type, std::move(rules), owners.get()),
      backends(std::move(targets)),
      audit(std::move(audit_log)) {}

void Frontend::publish(std::shared_ptr<const FrontendSnapshot> snapshot) {
  const MutexLock lock(mutex_);
  snapshot_.swap(snapshot);
}

std::shared_ptr<const FrontendSnapshot> Frontend::snapshot() const {
  const MutexLock lock(mutex_);
  return snapshot_;
}

bool Frontend::handle_inline(const net::Request& request, net::Response& response) const {
  const auto start = steady_clock::now();
  const auto now = snapshot();
  if (request.body.size() > FrontendSnapshot::kMaxCheckedBodyBytes) {
    return false;  // copying it takes longer than other connections should wait
  }
  const auto parsed = parsed_request(request, request.body);
  const auto decision = now->gate.decide_inline(parsed, request.headers);
  if (!decision) {
    return false;
  }
  const Pool* const pool = now->backends->find(decision->cluster);
  if (pool == nullptr || !pool->has_static_headers() || is_admin_health(*decision, request)) {
    return false;
  }
  const std::string_view path = decision->forward.path;
  if (decision->filtered ||
      (!decision->admin && MatcherSupport::concerns(path.substr(path.rfind('/') + 1)))) {
    return false;  // the server may have to be asked first
  }
  const auto picked = pool->pick();
  std::string text = broken_key(user_of(request), parsed);
  if (picked.empty() || broken_.refuses(text)) {
    return false;  // handle() answers and counts the request
  }
  type_metrics_.observe_decision(seconds_since(start));
  type_metrics_.count_allowed(decision->admin);
  audit_read(now->audit.get(), request, parsed, *decision);
  relay(request, *decision, *now, picked, std::move(text), response);
  return true;
}

void Frontend::handle(const net::Request& request, net::Response& response) const {
  const auto now = snapshot();
  if (answer_own_page(request, *now->backends, response)) {
    return;
  }
  const auto start = steady_clock::now();
  if (request.body.size() > now->max_body_bytes) {  // a reload cannot change the listener's limit
    type_metrics_.count_refused("size");
    net::plain_text(response, 413, "Request Entity Too Large");
    return;
  }
  const auto parsed = parsed_request(request, request.body);
  auto decided = now->gate.decide(parsed, request.headers);
  type_metrics_.observe_decision(seconds_since(start));
  if (!decided) {
    if (decided.error().reason == "path" && is_settings_call(type_, request)) {
      answer_no_settings(request, response);
      return;
    }
    refuse(request, parsed, decided.error(), *now, response);
    return;
  }
  if (request.body_missing) {  // the rules changed after needs_body()
    type_metrics_.count_refused("size");
    net::plain_text(response, 503, "Service not available");
    return;
  }
  std::string text = broken_key(user_of(request), parsed);
  if (broken_.refuses(text)) {
    refuse(request, parsed, breaks_servers(), *now, response);
    return;
  }
  type_metrics_.count_allowed(decided->admin);
  if (is_admin_health(*decided, request)) {
    response.set_header("Content-Type", "text/plain; charset=utf-8");
    response.body = kHealthy;
    return;
  }
  const Pool* const pool = now->backends->find(decided->cluster);
  auto picked = pool == nullptr ? std::vector<const Backend*>() : pool->pick();
  if (picked.empty()) {
    type_metrics_.count_refused("no_backend");
    net::plain_text(response, 503, "Service not available");
    return;
  }
  if (!decided->admin && drop_without_matchers(picked, decided->forward.path) && picked.empty()) {
    refuse(request, parsed, ignored_matchers(), *now, response);
    return;
  }
  if (auto& filtered = decided->filtered; filtered) {
    if (auto filtering = with_filters(picked); !filtering.empty()) {
      picked = std::move(filtering);
      decided->forward = std::move(*filtered);
    }
  }
  audit_read(now->audit.get(), request, parsed, *decided);
  relay(request, *decided, *now, picked, std::move(text), response);
}

void Frontend::refuse(const net::Request& request,
                      const gate::ParsedRequest& parsed,
                      const gate::Refusal& refusal,
                      const FrontendSnapshot& now,
                      net::Response& response) const {
  type_metrics_.count_refused(refusal.reason);
  log::info("refused", {{"backend_type", gate::type_name(type_)},
                        {"user", printable(value_of(request.headers, model::kUserHeader), 100)},
                        {"path", printable(request.path, 200)},
                        {"reason", refusal.reason},
                        {"status", refusal.status}});
  audit_denial(now.audit.get(), request, parsed, refusal);
  const bool to_connect = type_ == gate::BackendType::kProfiles && is_connect_call(request);
  answer_refusal(refusal, to_connect, response);
}

bool Frontend::needs_body(const net::Request& request) const {
  // A part of the body may be here already.
  return !is_own_page(request) &&
         snapshot()->gate.admits_head(parsed_request(request, {}), request.headers);
}

bool Frontend::answer_own_page(const net::Request& request,
                               const Backends& backends,
                               net::Response& response) const {
  if (!is_own_page(request)) {
    return false;
  }
  if (request.path == kHealthPath) {
    net::plain_text(response, 200, kHealthy);
  } else {
    response.set_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    response.body = metrics_.page(type_, backends);
  }
  return true;
}

void Frontend::relay(const net::Request& request,
                     const gate::Decision& decision,
                     const FrontendSnapshot& snapshot,
                     const std::vector<const Backend*>& picked,
                     std::string text,
                     net::Response& response) const {
  auto relay = std::make_shared<net::Relay>();
  std::vector<SentToken> tokens;
  for (const Backend* const backend : picked) {
    auto attempt = attempt_for(*backend, request, decision);
    if (attempt) {
      if (!backend->own_headers) {
        tokens.push_back({backend, std::string(value_of(attempt->headers,
                                                        "Authorization"))});  // never the client's
      }
      relay->attempts.push_back(std::move(*attempt));
    } else {
      log::error("cannot send a request to a backend",
                 {{"backend", backend->upstream->address()}, {"err", attempt.error().message}});
    }
  }
  const bool rewritten = !decision.forward.path.empty();
  relay->user = user_of(request);
  relay->body = rewritten ? decision.forward.body : request.body;
  // Requests of users never change anything.
  relay->repeatable = rewritten || request.method == "GET" || request.method == "HEAD" ||
                      (request.method == "POST" && only_reads(type_, request.path));
  net::plain_text(relay->unavailable, 503, "Service not available");
  const std::vector<std::string>& labels = picked.front()->filter_labels;
  if (type_ == gate::BackendType::kTsdb && !labels.empty()) {
    relay->filter = [hidden = HiddenLabels{.names = labels,
                                           .path = rewritten ? decision.forward.path : request.path,
                                           .cluster = decision.cluster,
                                           .admin = decision.admin}](int status,
                                                                     const net::Headers& headers) {
      return make_answer_filter(hidden, status, headers);
    };
  }
  // Holding the backends keeps their health checks going while requests wait, even after a reload.
  relay->done = [this, start = steady_clock::now(), held = snapshot.backends,
                 tokens = std::move(tokens), text = std::move(text),
                 line = access_line(request, decision)](const net::RelayEnd& end) {
    type_metrics_.count_answer(end, seconds_since(start));
    if (end.broken > 0 && end.upstream == nullptr) {  // otherwise another server could answer it
      broken_.note(text, end.broken);
    }
    drop_refused_tokens(tokens, end);
    if (line) {
      log::debug("passed on",
                 {{"backend_type", gate::type_name(type_)},
                  {"user", line->user},
                  {"cluster_id", line->cluster},
                  {"path", line->path},
                  {"units", line->units},
                  {"backend", end.upstream == nullptr ? std::string() : end.upstream->address()},
                  {"status", end.status},
                  {"err", end.error}});
    }
  };
  response.relay = std::move(relay);
}

bool is_own_page(const net::Request& request) {
  return (request.path == kHealthPath || request.path == kMetricsPath) &&
         net::find_header(request.headers, model::kClusterHeader) == nullptr;
}

std::string user_of(const net::Request& request) {
  const std::string* const user = net::find_header(request.headers, model::kUserHeader);
  return user == nullptr || user->empty() ? "@" + request.remote_address : *user;
}

Result<net::Relay::Attempt> attempt_for(const Backend& backend,
                                        const net::Request& request,
                                        const gate::Decision& decision) {
  const gate::Forward& forward = decision.forward;
  const bool rewritten = !forward.path.empty();
  net::Relay::Attempt attempt;
  attempt.upstream = backend.upstream;
  attempt.method = rewritten ? forward.method : request.method;
  const std::string_view path =
      rewritten ? std::string_view(forward.path) : encoded_path(request.target);
  attempt.target = target_of(
      backend, path, rewritten ? std::string_view(forward.query) : std::string_view(request.query));
  const std::string* const host = net::find_header(request.headers, "Host");
  const bool behind_socket = !backend.upstream->options().unix_socket.empty();
  const std::string own_name = behind_socket ? "localhost" : backend.upstream->address();
  // A reverse proxy may choose a server by Host. What the gate checked must reach the configured
  // server, whatever Host the client sent.
  attempt.host =
      host == nullptr || behind_socket || rewritten ? own_host(*backend.upstream) : *host;

  const bool filtered = !backend.filter_labels.empty();
  CEEMS_TRY(own, backend.own_headers ? Result<net::Headers>(*backend.own_headers)
                                     : backend.client->own_headers(backend.url));
  const net::HopFields hop(request.headers);
  for (const auto& [name, value] : request.headers) {
    const std::string low = to_lower(name);
    if (hop.contains(low) || is_never_passed(low) || (rewritten && !passes_for_users(low)) ||
        net::find_header(own, name) != nullptr || (filtered && low == "accept-encoding") ||
        (rewritten && (low == "content-type" || low == "content-encoding"))) {
      continue;
    }
    attempt.headers.emplace_back(name, value);
  }
  if (!forward.content_type.empty()) {
    attempt.headers.emplace_back("Content-Type", forward.content_type);
  }
  if (filtered) {
    attempt.headers.emplace_back("Accept-Encoding", "identity");
  }
  if (!decision.user.empty()) {
    attempt.headers.emplace_back(model::kLoggedUserHeader, decision.user);
  }
  attempt.headers.emplace_back("X-Forwarded-For", forwarded_for(request));
  attempt.headers.emplace_back("User-Agent", "ceems_lb/" + own_name);
  for (auto& field : own) {
    attempt.headers.push_back(std::move(field));
  }
  return attempt;
}

std::vector<std::string> hidden_labels(const Backends& backends) {
  std::vector<std::string> labels;
  for (const auto& [cluster, pool] : backends.pools()) {
    for (const Backend& backend : pool.backends()) {
      labels.insert(labels.end(), backend.filter_labels.begin(), backend.filter_labels.end());
    }
  }
  return labels;
}

}  // namespace ceems::lb
