#include "admission/service.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "os/privileges.h"

namespace ceems::admission {
namespace {

using std::chrono::steady_clock;

constexpr std::string_view kHealthPath = "/health";
constexpr std::string_view kMetricsPath = "/metrics";
constexpr std::string_view kMutatePath = "/ceems-admission-controller/mutate";
constexpr std::string_view kValidatePath = "/ceems-admission-controller/validate";
constexpr std::string_view kJson = "application/json";
/// The API server stores objects of up to 1.5 MiB; a review of an UPDATE holds two.
constexpr std::size_t kMaxBodyBytes = std::size_t{3} << 20U;
/// A review of this size takes less than a millisecond.
constexpr std::size_t kBriefBytes = std::size_t{64} << 10U;

void refuse_method(std::string_view allowed, net::Response& response) {
  net::plain_text(response, 405, "Method Not Allowed");
  response.set_header("Allow", std::string(allowed));
}

}  // namespace

void Reviewer::handle(const net::Request& request, net::Response& response) {
  if (net::redirect_to_clean_path(request, response)) {
    return;
  }
  if (request.path == kMutatePath || request.path == kValidatePath) {
    if (request.method != "POST") {
      return refuse_method("POST", response);
    }
    return answer_hook(request.path == kMutatePath ? Hook::kMutate : Hook::kValidate, request,
                       response);
  }
  if (request.path != kHealthPath && request.path != kMetricsPath) {
    return net::plain_text(response, 404, "404 page not found");
  }
  if (request.method != "GET") {
    return refuse_method("GET", response);
  }
  if (request.path == kHealthPath) {
    net::plain_text(response, 200, "");
    response.body = "CEEMS k8s Admission Controller is healthy";
  } else {
    response.set_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    response.body = metrics_.page();
  }
}

void Reviewer::answer_hook(Hook hook, const net::Request& request, net::Response& response) {
  const auto start = steady_clock::now();
  const ReviewOutcome outcome = review(hook, request, response);
  const std::chrono::duration<double> took = steady_clock::now() - start;
  metrics_.count(hook == Hook::kMutate ? "mutate" : "validate", outcome, took.count());
}

ReviewOutcome Reviewer::review(Hook hook, const net::Request& request, net::Response& response) {
  constexpr int kBadRequest = 400;
  constexpr int kInternalError = 500;
  const std::string* const type = net::find_header(request.headers, "Content-Type");
  if (type == nullptr || *type != kJson) {
    net::plain_text(response, kBadRequest, "only content type 'application/json' is supported");
    return ReviewOutcome::kInvalid;
  }
  auto review = parse_review(request.body, workloads_);
  if (!review) {
    log::error("invalid review",
               {{"peer", request.remote_address}, {"err", review.error().message}});
    net::plain_text(response, kBadRequest, review.error().message);
    return ReviewOutcome::kInvalid;
  }
  Verdict verdict;
  const ReviewOutcome outcome = decide(hook, *review, verdict);
  if (outcome == ReviewOutcome::kError) {
    log::error("cannot review", {{"uid", printable(review->uid)},
                                 {"operation", printable(review->operation_text)},
                                 {"err", review->object ? "operation is not supported"
                                                        : review->object.error().message}});
    response.status = kInternalError;
    return outcome;
  }
  response.set_header("Content-Type", std::string(kJson));
  response.body = answer_json(review->api_version, review->uid, verdict);
  return outcome;
}

ReviewOutcome Reviewer::decide(Hook hook, const Review& review, Verdict& verdict) {
  const auto warn = [&review](std::string_view event) {
    log::warn(event, {{"namespace", printable(review.name_space)},
                      {"name", printable(review.name)},
                      {"user", printable(review.caller.name)},
                      {"operation", review.operation_text}});
  };
  if (review.operation == Operation::kUnknown) {
    verdict.allowed = false;
    verdict.message = "Invalid operation: " + review.operation_text;
    return ReviewOutcome::kRefused;
  }
  if (review.operation != Operation::kCreate && review.operation != Operation::kUpdate) {
    return ReviewOutcome::kError;
  }
  if (!review.object) {
    return ReviewOutcome::kError;
  }
  if (review.object->kind == Kind::kOther) {
    return ReviewOutcome::kSkipped;
  }
  if (hook == Hook::kMutate) {
    verdict = mutate(rules_, review, *review.object);
    return verdict.patch.empty() ? ReviewOutcome::kUnchanged : ReviewOutcome::kPatched;
  }
  Validation validation = validate(rules_, review, *review.object);
  verdict = std::move(validation.verdict);
  if (!verdict.allowed) {
    warn("refused a creator");
    return ReviewOutcome::kRefused;
  }
  if (validation.would_patch) {
    warn("the creator is missing or not as the mutating webhook would set it");
  }
  return validation.would_patch ? ReviewOutcome::kUnmarked : ReviewOutcome::kUnchanged;
}

Result<std::unique_ptr<net::Server>> create_server(const ServiceOptions& options,
                                                   Reviewer& reviewer) {
  constexpr long kMinThreads = 2;
  constexpr long kMaxThreads = 64;
  net::ServerOptions server;
  server.listen_addresses = options.listen_addresses;
  server.web_config_file = options.web_config_file;
  server.around_files = os::read_as_root;
  server.threads = static_cast<int>(std::clamp(options.threads, kMinThreads, kMaxThreads));
  server.max_body_bytes = kMaxBodyBytes;
  server.idle_timeout = std::chrono::seconds(90);
  server.urgent = [](const net::Request& request) {
    return request.path == kHealthPath || request.path == kMetricsPath;
  };
  server.on_certificate = reviewer.metrics().on_certificate();
  server.brief = [](const net::Request& request) { return request.body.size() <= kBriefBytes; };
  server.on_dropped = [&reviewer](net::Dropped what) { reviewer.metrics().count_dropped(what); };
  return net::Server::create(std::move(server),
                             [&reviewer](const net::Request& request, net::Response& response) {
                               reviewer.handle(request, response);
                             });
}

}  // namespace ceems::admission
