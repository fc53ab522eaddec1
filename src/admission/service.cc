#include "admission/service.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "metrics/web_certificate.h"
#include "os/privileges.h"

namespace ceems::admission {
namespace {

constexpr std::array kBounds{1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1.0};

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

std::string_view to_string(ReviewOutcome outcome) {
  switch (outcome) {
    case ReviewOutcome::kPatched:
      return "patched";
    case ReviewOutcome::kUnchanged:
      return "unchanged";
    case ReviewOutcome::kUnmarked:
      return "unmarked";
    case ReviewOutcome::kSkipped:
      return "skipped";
    case ReviewOutcome::kRefused:
      return "refused";
    case ReviewOutcome::kInvalid:
      return "invalid";
    case ReviewOutcome::kError:
      return "error";
  }
  return "unknown";
}

ReviewMetrics::ReviewMetrics()
    : reviews_(registry_.counters("ceems_k8s_admission_controller_reviews_total",
                                  "Reviews by webhook and by what became of them.",
                                  {"hook", "outcome"})),
      dropped_(
          registry_
              .counters("ceems_k8s_admission_controller_dropped_requests_total",
                        "Requests that the server gave up because of too much load, by reason.",
                        {"reason"})
              .hide_zeros()),
      durations_(registry_.histograms("ceems_k8s_admission_controller_review_duration_seconds",
                                      "Time from the complete request to the answer, in seconds.",
                                      {"hook"},
                                      kBounds)) {
  for (const std::string_view hook : {"mutate", "validate"}) {
    durations_.with({hook});
    for (int i = 0; i <= static_cast<int>(ReviewOutcome::kError); ++i) {
      reviews_.with({hook, to_string(static_cast<ReviewOutcome>(i))});
    }
  }
}

void ReviewMetrics::count(std::string_view hook, ReviewOutcome outcome, double seconds) {
  reviews_.with({hook, to_string(outcome)}).add();
  durations_.with({hook}).observe(seconds);
}

std::function<void(std::int64_t)> ReviewMetrics::on_certificate() {
  // The name that this program had before all servers had one.
  metrics::Gauge& gauge =
      registry_
          .gauges("ceems_k8s_admission_controller_certificate_end_timestamp_seconds",
                  "When the certificate of the server ends, in epoch seconds.", {})
          .hide_zeros()
          .with({});
  return [&gauge, set = metrics::web_certificate_gauge(registry_)](std::int64_t end) {
    gauge.set(static_cast<double>(end));
    set(end);
  };
}

std::string ReviewMetrics::page() {
  std::string out;
  registry_.append_page(out);
  return out;
}

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
