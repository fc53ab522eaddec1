#include "api/server.h"

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/accounting/accounting.h"
#include "api/answer/envelope.h"
#include "api/answer/pages.h"
#include "api/auditing.h"
#include "api/check/job_check.h"
#include "api/endpoints/unit_filter.h"
#include "api/feedback.h"
#include "api/mail/mute_page.h"
#include "api/node_judge.h"
#include "api/report/digest_maker.h"
#include "api/report/maker.h"
#include "api/statements/kept.h"
#include "tsdb/client.h"
#include "webui/asset.h"

namespace ceems::api {
namespace {

constexpr std::string_view kApi = "/api/v1/";

/// What is served at a path.
enum class Place : std::uint8_t {
  kNothing,
  kEndpoint,
  kHealth,
  kMetrics,
  kDocument,
  kDocumentFolder,
  kDocumentPage,
  kDocumentStyle,
  kAsset,
  kLanding,
  kLogin,
  kMute,
};

struct FixedPath {
  std::string_view path;
  Place place;
};
constexpr std::array kFixedPaths = {
    FixedPath{"/health", Place::kHealth},
    FixedPath{"/metrics", Place::kMetrics},
    FixedPath{"/openapi.json", Place::kDocument},
    FixedPath{"/swagger/doc.json", Place::kDocument},
    FixedPath{"/swagger/index.html", Place::kDocumentPage},
    FixedPath{"/swagger/style.css", Place::kDocumentStyle},
    FixedPath{"/swagger/", Place::kDocumentFolder},
    FixedPath{"/swagger", Place::kDocumentFolder},
};

// Values of the label `route` for paths outside the API.
constexpr std::array<std::string_view, 5> kOtherLabels{"other", "health", "metrics", "swagger",
                                                       "ui"};

std::vector<std::string> labels() {
  std::vector<std::string> all;
  for (const Endpoint& endpoint : all_endpoints()) {
    all.emplace_back(endpoint.path);
  }
  all.insert(all.end(), kOtherLabels.begin(), kOtherLabels.end());
  return all;
}

std::size_t label_of(Place place, const Endpoint* endpoint) {
  const std::size_t others = all_endpoints().size();
  switch (place) {
    case Place::kEndpoint:
      return static_cast<std::size_t>(endpoint - all_endpoints().data());
    case Place::kHealth:
      return others + 1;
    case Place::kMetrics:
      return others + 2;
    case Place::kDocument:
    case Place::kDocumentFolder:
    case Place::kDocumentPage:
    case Place::kDocumentStyle:
      return others + 3;
    case Place::kAsset:
    case Place::kLanding:
    case Place::kLogin:
    case Place::kMute:
      return others + 4;
    case Place::kNothing:
      break;
  }
  return others;
}

Result<net::TrustedPeers> ranges_of(std::string_view flag, const std::vector<std::string>& texts) {
  net::TrustedPeers peers;
  for (const std::string& text : texts) {
    CEEMS_TRY_IN(flag, range, net::Cidr::parse(text));
    peers.ranges.push_back(range);
  }
  return peers;
}

bool is_read_only(Place place) {
  return place == Place::kMetrics || place == Place::kDocument || place == Place::kDocumentFolder ||
         place == Place::kDocumentPage || place == Place::kDocumentStyle;
}

}  // namespace

struct ApiServer::Target {
  Place place = Place::kNothing;
  const Endpoint* endpoint = nullptr;
  std::optional<webui::Asset> asset = {};
  std::string_view path = {};  ///< part of the path of the request, without the prefix
};

ApiServer::ApiServer(ApiOptions options,
                     Cors cors,
                     RateLimiter::Peers peers,
                     store::Reader& reader,
                     SeriesSource* series,
                     metrics::Registry& registry,
                     const Clock& clock)
    : options_(std::move(options)),
      cors_(std::move(cors)),
      limiter_(options_.max_requests, std::move(peers)),
      unknown_users_(reader),
      registry_(registry),
      metrics_(registry, labels(), clock),
      health_(reader, metrics_, options_.health_wait),
      document_({.route_prefix = options_.route_prefix,
                 .external_url = options_.external_url,
                 .user_headers = options_.user_headers}),
      accounting_(std::make_unique<Accounting>(
          std::move(options_.accounting), options_.site, options_.fleet, reader, registry)),
      reports_(std::make_unique<ReportMaker>(
          reader, options_.measurements, *options_.rules, accounting_.get())),
      digests_(std::make_unique<DigestMaker>(
          reader, TimeZone::find(options_.site.time_zone).value_or(TimeZone()))),
      checks_(std::make_unique<JobCheck>(
          JobCheck::Sources{.reader = &reader,
                            .fleet = options_.fleet,
                            .accounting = accounting_.get(),
                            .rules = options_.rules.get(),
                            .site = &options_.site,
                            .clock = &clock,
                            .zone = TimeZone::find(options_.site.time_zone).value_or(TimeZone())})),
      feedback_(
          std::make_unique<FeedbackBox>(std::move(options_.open_feedback), options_.external_url)),
      nodes_(std::make_unique<NodeJudge>(NodeJudge::Sources{.reader = &reader,
                                                            .fleet = options_.fleet,
                                                            .site = &options_.site,
                                                            .registry = &registry,
                                                            .clock = &clock})),
      statements_(std::make_unique<KeptStatements>(clock)),
      services_{.reader = &reader,
                .series = series,
                .fleet = options_.fleet,
                .profiles = options_.profiles,
                .reports = reports_.get(),
                .digests = digests_.get(),
                .tags = &tags_,
                .accounting = accounting_.get(),
                .checks = checks_.get(),
                .feedback = feedback_.get(),
                .nodes = nodes_.get(),
                .statements = statements_.get(),
                .usage_cache = &usage_cache_,
                .metrics = &metrics_,
                .sign_in = options_.sign_in,
                .tokens = options_.tokens,
                .site = &options_.site,
                .clock = &clock,
                .max_period_ms = options_.max_period_ms,
                .zone = TimeZone::find(options_.site.time_zone).value_or(TimeZone())} {}

ApiServer::~ApiServer() = default;

Result<std::unique_ptr<ApiServer>> ApiServer::create(ApiOptions options,
                                                     store::Reader& reader,
                                                     SeriesSource* series,
                                                     metrics::Registry& registry,
                                                     const Clock& clock) {
  if (!options.route_prefix.empty() && options.route_prefix.front() != '/') {
    return fail(ErrorCode::kInvalidArgument, "--web.route-prefix must start with a slash, got '{}'",
                options.route_prefix);
  }
  while (!options.route_prefix.empty() && options.route_prefix.back() == '/') {
    options.route_prefix.pop_back();
  }
  CEEMS_TRY(cors, Cors::create(options.cors_origin, options.user_headers));
  CEEMS_TRY(proxies, ranges_of("--web.trusted-proxies", options.trusted_proxies));
  CEEMS_TRY(exempt, ranges_of("--web.trusted-ip-prefix", options.trusted_ip_prefix));
  return std::unique_ptr<ApiServer>(
      new ApiServer(std::move(options), std::move(cors),
                    {.proxies = std::move(proxies), .exempt = std::move(exempt)}, reader, series,
                    registry, clock));
}

ApiServer::Target ApiServer::find_target(const net::Request& request) const {
  Target target;
  std::string_view path = request.path;
  const std::string& prefix = options_.route_prefix;
  const bool prefixed =
      !prefix.empty() && path.starts_with(prefix) && path.substr(prefix.size()).starts_with('/');
  if (prefixed) {
    path.remove_prefix(prefix.size());
  }
  if (path.starts_with(kApi) && (prefixed || prefix.empty())) {
    const Endpoint* const found = find_endpoint(path.substr(kApi.size()), request.method);
    if (found != nullptr) {
      target.endpoint = found;
      target.place = Place::kEndpoint;
    }
    return target;
  }
  target.path = path;
  if (options_.sign_in != nullptr && options_.sign_in->has_page(request.method, path)) {
    target.place = Place::kLogin;
    return target;
  }
  if (options_.mute_page != nullptr && path == MutePage::kPath) {
    target.place = Place::kMute;
    return target;
  }
  for (const FixedPath& fixed : kFixedPaths) {
    if (path == fixed.path) {
      target.place = fixed.place;
      return target;
    }
  }
  const bool page = path == "/" || path == "/ui/";
  const std::string_view file = path.starts_with("/ui/") ? path.substr(4) : path.substr(1);
  target.asset = webui::find(page ? "index.html" : file);
  if (target.asset) {
    target.place = Place::kAsset;
  } else if (page) {
    target.place = Place::kLanding;
  }
  return target;
}

Result<access::Identity> ApiServer::identify(const net::Request& request, net::Response& response) {
  QueryTimer timer(metrics_, Query::kIdentity);
  return timer.run([&]() -> Result<access::Identity> {
    if (options_.sign_in != nullptr) {
      return options_.sign_in->identify(request, response);
    }
    auto named = access::user_name(request.headers, options_.user_headers);
    return access::identify(*services_.reader, options_.roles, std::move(named).value_or(""));
  });
}

bool ApiServer::identify_by_token(const Endpoint& endpoint, Call& call) {
  using Verdict = login::Tokens::Verdict;
  net::Response& response = *call.response;
  call.denied_for = "token";
  login::Tokens::Checked checked;
  const bool misplaced = login::has_token_in_query(*call.request);
  if (options_.tokens != nullptr && !misplaced) {
    QueryTimer timer(metrics_, Query::kIdentity);
    auto found = timer.run([&] { return options_.tokens->check(*call.request); });
    if (!found) {
      answer_failure(response, found.error());
      return false;
    }
    checked = *std::move(found);
  }
  if (checked.verdict != Verdict::kGood) {
    std::string_view why = "the personal token is not valid";
    if (misplaced) {
      why = "personal tokens are sent in a header; revoke the one in the address";
    } else if (checked.verdict == Verdict::kMixed) {
      why = "the request has a personal token and names another user";
    }
    answer_error(response, ApiErrorType::kUnauthorized, why);
    response.set_header("WWW-Authenticate", "Bearer error=\"invalid_token\"");
    if (checked.verdict == Verdict::kTooMany) {
      constexpr int kTooManyRequests = 429;
      response.status = kTooManyRequests;
      response.set_header("Retry-After", std::to_string(checked.wait.count()));
    }
    return false;
  }
  call.identity = std::move(checked.identity);
  call.by_token = true;
  if (!endpoint.takes_tokens()) {
    call.denied_for = "token_scope";
    answer_error(response, ApiErrorType::kForbidden, "a personal token may not do this");
    return false;
  }
  call.denied_for = {};
  return true;
}

Result<> ApiServer::read_params(const Endpoint& endpoint, Call& call) const {
  // Units that are requested by id are returned whenever they ran.
  const Params& params = call.params;
  const bool without_period = endpoint.window == WindowKind::kListed && params.from.empty() &&
                              params.to.empty() &&
                              !(params.uuids.empty() && params.text(Param::kWords).empty());
  if (endpoint.window == WindowKind::kRounded ||
      (endpoint.window == WindowKind::kEnded && call.params.uuids.empty()) ||
      (endpoint.window == WindowKind::kListed && !without_period)) {
    const auto parse =
        endpoint.window == WindowKind::kRounded ? parse_rounded_window : parse_window;
    CEEMS_TRY(window, parse(call.params, services_.now_ms(), options_.max_period_ms));
    call.window = window;
  }
  if (endpoint.page_key > 0) {
    CEEMS_TRY(sorting, parse_sorting(call.params));
    call.sorting = sorting;
    const bool by_end = sorting.by == store::UnitOrder::kByEnd;
    call.listing = fmt::format("{}{}{}", endpoint.path, by_end ? " by end" : "",
                               sorting.descending ? " descending" : "");
    CEEMS_TRY(page, parse_page(call.params, call.listing, endpoint.page_key + (by_end ? 1 : 0)));
    call.page = std::move(page);
  }
  return {};
}

std::string ApiServer::tag_of(const Endpoint& endpoint, const Call& call) const {
  const auto bounds = call.window.value_or(store::TimeRange{});
  return tags_.make({endpoint.path, call.request->query, call.identity.user,
                     access::role_name(call.identity.role),
                     std::to_string(services_.reader->generation()), std::to_string(bounds.from_ms),
                     std::to_string(bounds.to_ms)});
}

void ApiServer::call_endpoint(const Endpoint& endpoint,
                              const net::Request& request,
                              net::Response& response) {
  // Caches must not keep the answer, because it is for this caller only.
  response.set_header("Cache-Control", "no-store");
  Call call{
      .request = &request, .response = &response, .route = endpoint.path, .streams = &streams_};
  serve_endpoint(endpoint, call);
  audit_call(options_.audit, endpoint, call);
}

void ApiServer::serve_endpoint(const Endpoint& endpoint, Call& call) {
  const net::Request& request = *call.request;
  net::Response& response = *call.response;
  call.params = parse_params(request.query, endpoint.params);
  if (endpoint.caller != Caller::kAnyone &&
      (login::has_token(request) || login::has_token_in_query(request))) {
    if (!identify_by_token(endpoint, call)) {
      return;
    }
  } else if (endpoint.caller != Caller::kAnyone) {
    auto identity = identify(request, response);
    if (!identity) {
      answer_failure(response, identity.error());
      return;
    }
    call.identity = std::move(*identity);
    if (call.identity.user.empty()) {
      if (call.params.anonymous) {
        answer_anonymous(request, response);
      } else if (options_.sign_in != nullptr && endpoint.login) {
        options_.sign_in->answer_unauthenticated(request, response);
      } else {
        answer_error(response, ApiErrorType::kUnauthorized, "no user identified");
      }
      return;
    }
  }
  if (endpoint.caller == Caller::kAdmin) {
    if (access::admin_area(call.identity) != access::Decision::kAllow) {
      answer_error(response, ApiErrorType::kForbidden,
                   "current user does not have admin privileges");
      return;
    }
    call.admin_route = true;
    call.foreign = endpoint.audited;
  }
  if (auto done = read_params(endpoint, call); !done) {
    answer_bad_request(call, done.error());
    return;
  }
  if (endpoint.params.contains(Param::kUuid) && !endpoint.raw_ids) {
    if (auto done = find_shown_ids(services_, call); !done) {
      if (done.error().code == ErrorCode::kInvalidArgument) {
        answer_bad_request(call, done.error());
      } else {
        answer_failure(response, done.error());
      }
      return;
    }
  }
  // The tag is computed before the query. If a commit comes in between, an old tag is sent with a
  // new answer, which is harmless; the reverse would hide the commit from the client.
  // Usage by hour is from the TSDB, of whose state no tag knows.
  const bool tagged = endpoint.tagged && call.params.text(Param::kStep) != "hour";
  const std::string tag = tagged ? tag_of(endpoint, call) : "";
  if (!tag.empty() && client_has(request, tag)) {
    response.status = 304;
  } else {
    endpoint.handler(services_, call);
    if (!call.admin_route) {
      unknown_users_.warn(call.identity, response);
    }
  }
  if (!tag.empty() && (response.status == 200 || response.status == 304)) {
    response.set_header("ETag", tag);
    response.set_header("Cache-Control", "private, no-cache");
  }
}

bool ApiServer::waits(const net::Request& request) const {
  const Target target = find_target(request);
  return target.endpoint != nullptr &&
         (target.endpoint->waits ||
          (target.endpoint->priced && accounting_->options().prices.in_tsdb()) ||
          // Escapes are not decoded here: what may say step=hour waits, too.
          (target.endpoint->params.contains(Param::kStep) &&
           (request.query.contains("step=hour") || request.query.contains('%'))));
}

bool ApiServer::needs_body(const net::Request& request) const {
  const Place place = request.method == "POST" ? find_target(request).place : Place::kNothing;
  return place == Place::kLogin || place == Place::kMute || place == Place::kEndpoint;
}

void ApiServer::answer_anonymous(const net::Request& request, net::Response& response) {
  if (options_.sign_in != nullptr) {
    options_.sign_in->answer_anonymous(request, response);
  } else {
    answer_nobody(response, {});
  }
}

void ApiServer::answer(const Target& target, const net::Request& request, net::Response& response) {
  if (target.place == Place::kNothing) {
    answer_not_found(response);
    return;
  }
  if (options_.max_requests > 0 && !limiter_.admit(request, response, services_.now_ms())) {
    metrics_.count_limited();
    return;
  }
  if (is_read_only(target.place) && request.method != "GET" && request.method != "HEAD") {
    net::plain_text(response, 405, "Method not allowed");
    response.set_header("Allow", "GET, HEAD");
    return;
  }
  switch (target.place) {
    case Place::kEndpoint:
      if (request.method != "OPTIONS") {
        call_endpoint(*target.endpoint, request, response);
      }
      cors_.add_headers(request, response);
      break;
    case Place::kHealth:
      health_.answer(response);
      cors_.add_headers(request, response);
      break;
    case Place::kMetrics:
      accounting_->set_gauges(services_.zone, *services_.clock);
      nodes_->set_gauges();
      checks_->keep_fresh();
      answer_metrics(registry_, response);
      break;
    case Place::kDocument:
      document_.answer_json(request, response);
      break;
    case Place::kDocumentPage:
      document_.answer_page(request, response);
      break;
    case Place::kDocumentStyle:
      document_.answer_style(request, response);
      break;
    case Place::kDocumentFolder:
      // The location is relative, because a proxy may have removed a prefix.
      response.status = 301;
      response.set_header("Location",
                          request.path.ends_with('/') ? "index.html" : "swagger/index.html");
      break;
    case Place::kAsset:
      if (target.asset) {
        answer_asset(*target.asset, options_.site.embed_ancestors, request, response);
      }
      break;
    case Place::kLanding:
      answer_landing_page(response);
      break;
    case Place::kLogin:
      options_.sign_in->answer_page(target.path, request, response);
      audit_login(options_.audit, request, response);
      break;
    case Place::kMute:
      options_.mute_page->answer(request, response);
      break;
    case Place::kNothing:
      break;
  }
}

void ApiServer::handle(const net::Request& request, net::Response& response) {
  const bool redirected = net::redirect_to_clean_path(request, response);
  const Target target = redirected ? Target{} : find_target(request);
  const auto timer =
      std::make_shared<RequestTimer>(metrics_, label_of(target.place, target.endpoint));
  if (!redirected) {
    const tsdb::CancelScope scope(request.given_up);
    answer(target, request, response);
  }
  timer->set_status(response.status);
  if (response.next_chunk) {  // counted after the last chunk, or when the client disconnects
    response.next_chunk = [timer, given_up = request.given_up,
                           next = std::move(response.next_chunk)](std::string& out) {
      const tsdb::CancelScope scope(given_up);
      return next(out);
    };
  }
}

}  // namespace ceems::api
