#include "lb/frontend.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "lb/error_filter.h"
#include "lb/label_filter.h"

namespace ceems::lb {
namespace {

using std::chrono::steady_clock;

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

void answer_refusal(const gate::Refusal& refusal, net::Response& response) {
  response.status = refusal.status;
  response.set_header("Content-Type", "application/json");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.body = refusal.body();
}

std::string_view value_of(const net::Headers& headers, std::string_view name) {
  const std::string* const text = net::find_header(headers, name);
  return text == nullptr ? std::string_view() : *text;
}

gate::RawRequest raw_request(const net::Request& request) {
  return {.method = request.method,
          .target = request.target,
          .content_type = value_of(request.headers, "Content-Type"),
          .content_encoding = value_of(request.headers, "Content-Encoding"),
          .body = request.body};
}

/// What labels are taken out of, for the log.
struct Asked {
  std::string cluster;
  std::string path;
};

/// The client gets 502 or half an answer, and the server is at fault.
Result<> told(const Asked& asked, Result<> done) {
  if (!done) {
    log::warn("labels cannot be taken out of an answer", {{"cluster_id", asked.cluster},
                                                          {"path", printable(asked.path, 200)},
                                                          {"err", done.error().message}});
  }
  return done;
}

class AnswerFilter final : public net::BodyFilter {
 public:
  AnswerFilter(AnswerKind kind, std::vector<std::string> labels, Asked asked)
      : filter_(kind, std::move(labels)), asked_(std::move(asked)) {}

  Result<> feed(std::string_view piece, std::string& out) override {
    return told(asked_, filter_.feed(piece, out));
  }
  Result<> finish(std::string& out) override { return told(asked_, filter_.finish(out)); }

 private:
  LabelFilter filter_;
  Asked asked_;
};

/// The whole answer to a question for the values of a hidden label.
class EmptyFilter final : public net::BodyFilter {
 public:
  Result<> feed(std::string_view /*piece*/, std::string& /*out*/) override { return {}; }
  Result<> finish(std::string& out) override {
    out += R"({"status":"success","data":[]})";
    return {};
  }
};

/// The last parts of a path: "query", or "values" with the label before it.
struct Question {
  std::string_view name;
  std::string_view label;
};

Question question_of(std::string_view path) {
  while (path.ends_with('/')) {
    path.remove_suffix(1);
  }
  const std::size_t slash = path.rfind('/');
  Question question;
  question.name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (question.name == "values") {
    path = path.substr(0, slash);
    question.label = path.substr(path.rfind('/') + 1);
  }
  return question;
}

/// Does a request of an admin change nothing at a server, though it is sent by POST?
bool only_reads(gate::BackendType type, std::string_view path) {
  constexpr std::array<std::string_view, 5> kForms = {"query", "query_range", "query_exemplars",
                                                      "series", "labels"};
  return type == gate::BackendType::kProfiles
             ? path.contains("/querier.v1.QuerierService/")
             : std::ranges::find(kForms, question_of(path).name) != kForms.end();
}

std::unique_ptr<net::BodyFilter> make_filter(const Asked& asked,
                                             const std::vector<std::string>& labels) {
  const Question question = question_of(asked.path);
  if (question.name == "query" || question.name == "query_range") {
    return std::make_unique<AnswerFilter>(AnswerKind::kSamples, labels, asked);
  }
  if (question.name == "series") {
    return std::make_unique<AnswerFilter>(AnswerKind::kSeries, labels, asked);
  }
  if (question.name == "labels") {
    return std::make_unique<AnswerFilter>(AnswerKind::kNames, labels, asked);
  }
  if (question.name == "query_exemplars") {
    return std::make_unique<AnswerFilter>(AnswerKind::kExemplars, labels, asked);
  }
  // U__ begins a name that Prometheus 3 decodes, so it may spell a hidden one
  // (https://prometheus.io/docs/instrumenting/escaping_schemes).
  if (std::ranges::find(labels, question.label) != labels.end() ||
      question.label.starts_with("U__")) {
    return std::make_unique<EmptyFilter>();
  }
  return nullptr;
}

bool is_coded(const net::Headers& headers) {
  const std::string* const coding = net::find_header(headers, "Content-Encoding");
  return coding != nullptr && !same_in_any_case(*coding, "identity");
}

/// A server that compresses although it was asked not to.
class UnreadableFilter final : public net::BodyFilter {
 public:
  explicit UnreadableFilter(Asked asked) : asked_(std::move(asked)) {}

  Result<> feed(std::string_view /*piece*/, std::string& out) override { return finish(out); }
  Result<> finish(std::string& /*out*/) override {
    return told(asked_, fail(ErrorCode::kParse, "the server has compressed it"));
  }

 private:
  Asked asked_;
};

/// Of a request, for the log.
struct AccessLine {
  std::string user;
  std::string cluster;
  std::string path;
  std::string units;
};

/// Null where nobody reads it.
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

/// What a request showed to a server, where that may have to be fetched anew.
struct SentToken {
  const Backend* backend;
  std::string authorization;
};

void tell_refused(const std::vector<SentToken>& tokens, const net::RelayEnd& end) {
  constexpr int kUnauthorized = 401;
  for (const SentToken& token : tokens) {
    if (end.status == kUnauthorized && token.backend->upstream.get() == end.upstream) {
      token.backend->client->refused({{"Authorization", token.authorization}});
    }
  }
}

}  // namespace

void Frontend::set_state(std::shared_ptr<const FrontendState> state) {
  const std::scoped_lock lock(mutex_);
  state_.swap(state);
}

std::shared_ptr<const FrontendState> Frontend::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

bool Frontend::handle_inline(const net::Request& request, net::Response& response) const {
  const auto start = steady_clock::now();
  const auto now = state();
  if (request.body.size() > FrontendState::kMaxCheckedBodyBytes) {
    return false;  // copying it takes longer than other connections should wait
  }
  const auto decision = now->gate.decide_inline(raw_request(request), request.headers);
  if (!decision) {
    return false;
  }
  const Pool* const pool = now->backends->find(decision->cluster);
  if (pool == nullptr || !pool->asked_at_once() || (decision->admin && request.path == "/health")) {
    return false;
  }
  const auto chosen = pool->choose();
  if (chosen.empty()) {
    return false;  // handle() says so, and counts
  }
  figures_->observe_decision(type_, seconds_since(start));
  figures_->count_decision(type_, decision->admin ? "admin" : "allowed");
  pass_on(request, *decision, *now, chosen, response);
  return true;
}

void Frontend::handle(const net::Request& request, net::Response& response) const {
  const auto now = state();
  if (net::find_header(request.headers, "X-Ceems-Cluster-Id") == nullptr) {
    if (request.path == "/-/healthy") {
      net::plain_text(response, 200, "CEEMS LB Server is healthy");
      return;
    }
    if (request.path == "/metrics") {
      std::vector<Figures::Server> servers;
      for (const auto& [cluster, pool] : now->backends->pools()) {
        for (const Backend& backend : pool.backends()) {
          servers.push_back({type_, cluster, backend.upstream.get()});
        }
      }
      response.set_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
      response.body = figures_->page(servers);
      return;
    }
  }
  const auto start = steady_clock::now();
  if (request.body.size() > now->max_body_bytes) {  // the listener's bound is that of the start
    figures_->count_decision(type_, "size");
    net::plain_text(response, 413, "Request Entity Too Large");
    return;
  }
  const auto decided = now->gate.decide(raw_request(request), request.headers);
  figures_->observe_decision(type_, seconds_since(start));
  if (!decided) {
    figures_->count_decision(type_, decided.error().reason);
    log::info("refused", {{"backend_type", gate::type_name(type_)},
                          {"user", printable(value_of(request.headers, "X-Grafana-User"), 100)},
                          {"path", printable(request.path, 200)},
                          {"reason", decided.error().reason},
                          {"status", decided.error().status}});
    answer_refusal(decided.error(), response);
    return;
  }
  figures_->count_decision(type_, decided->admin ? "admin" : "allowed");
  if (decided->admin && request.path == "/health") {
    response.set_header("Content-Type", "text/plain; charset=utf-8");
    response.body = "CEEMS LB Server is healthy";
    return;
  }
  const Pool* const pool = now->backends->find(decided->cluster);
  const auto chosen = pool == nullptr ? std::vector<const Backend*>() : pool->choose();
  if (chosen.empty()) {
    figures_->count_decision(type_, "no_backend");
    net::plain_text(response, 503, "Service not available");
    return;
  }
  pass_on(request, *decided, *now, chosen, response);
}

void Frontend::pass_on(const net::Request& request,
                       const gate::Decision& decision,
                       const FrontendState& state,
                       const std::vector<const Backend*>& chosen,
                       net::Response& response) const {
  auto relay = std::make_shared<net::Relay>();
  std::vector<SentToken> tokens;
  for (const Backend* const backend : chosen) {
    auto attempt = attempt_for(*backend, request, decision);
    if (attempt) {
      if (!backend->own_headers) {
        tokens.push_back(
            {backend, std::string(value_of(attempt->headers, "Authorization"))});  // ours alone
      }
      relay->attempts.push_back(std::move(*attempt));
    } else {
      log::error("a backend cannot be asked",
                 {{"backend", backend->upstream->address()}, {"err", attempt.error().message}});
    }
  }
  const bool rewritten = !decision.forward.path.empty();
  relay->body = rewritten ? decision.forward.body : request.body;
  // What users may ask for changes nothing.
  relay->repeatable = rewritten || request.method == "GET" || request.method == "HEAD" ||
                      (request.method == "POST" && only_reads(type_, request.path));
  net::plain_text(relay->unavailable, 503, "Service not available");
  const std::vector<std::string>& labels = chosen.front()->filter_labels;
  if (type_ == gate::BackendType::kTsdb && !labels.empty()) {
    relay->filter = [asked = Asked{.cluster = decision.cluster,
                                   .path = rewritten ? decision.forward.path : request.path},
                     labels, admin = decision.admin](int status, const net::Headers& headers) {
      if (!admin && status >= 300) {
        return make_error_filter(status, headers);
      }
      auto filter = make_filter(asked, labels);
      constexpr int kNoContent = 204;
      if (filter == nullptr || status == kNoContent || status >= 300) {
        return std::unique_ptr<net::BodyFilter>();
      }
      if (is_coded(headers)) {
        filter = std::make_unique<UnreadableFilter>(asked);
      }
      return filter;
    };
  }
  // The servers are watched as long as requests wait for them, also after a reload.
  relay->done = [this, start = steady_clock::now(), held = state.backends,
                 tokens = std::move(tokens),
                 told = access_line(request, decision)](const net::RelayEnd& end) {
    figures_->count_answer(type_, end, seconds_since(start));
    tell_refused(tokens, end);
    if (told) {
      log::debug("passed on",
                 {{"backend_type", gate::type_name(type_)},
                  {"user", told->user},
                  {"cluster_id", told->cluster},
                  {"path", told->path},
                  {"units", told->units},
                  {"backend", end.upstream == nullptr ? std::string() : end.upstream->address()},
                  {"status", end.status},
                  {"err", end.error}});
    }
  };
  response.relay = std::move(relay);
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
