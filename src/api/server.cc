#include "api/server.h"

#include <optional>
#include <utility>

#include "api/envelope.h"
#include "api/pages.h"
#include "base/strings.h"
#include "webui/asset.h"

namespace ceems::api {
namespace {

constexpr std::string_view kApi = "/api/v1/";

/// The path without empty, "." and ".." segments; a slash at the end stays.
std::string clean_path(std::string_view path) {
  std::vector<std::string_view> kept;
  bool slash = true;
  for (const std::string_view segment : split(path, '/')) {
    slash = segment.empty() || segment == "." || segment == "..";
    if (segment == ".." && !kept.empty()) {
      kept.pop_back();
    } else if (!slash) {
      kept.push_back(segment);
    }
  }
  std::string result;
  for (const std::string_view segment : kept) {
    result += '/';
    result += segment;
  }
  if (slash || result.empty()) {
    result += '/';
  }
  return result;
}

/// A path as a Location: every segment percent-encoded.
std::string encode_path(std::string_view path) {
  std::string result;
  for (const std::string_view segment : split(path.substr(1), '/')) {
    result += '/';
    result += net::url_encode(segment);
  }
  return result;
}

}  // namespace

/// What a path leads to.
struct ApiServer::Target {
  const Route* route = nullptr;
  bool health = false;
  bool landing = false;
  std::optional<webui::Asset> asset = {};
  [[nodiscard]] bool found() const {
    return route != nullptr || health || landing || asset.has_value();
  }
};

ApiServer::ApiServer(
    ApiOptions options, Cors cors, store::Reader& reader, SeriesSource* series, const Clock& clock)
    : options_(std::move(options)),
      cors_(std::move(cors)),
      limiter_(options_.max_requests, options_.trusted_proxies),
      services_{.reader = &reader,
                .series = series,
                .usage_cache = &usage_cache_,
                .clock = &clock,
                .max_period_ms = options_.max_period_ms} {}

Result<std::unique_ptr<ApiServer>> ApiServer::create(ApiOptions options,
                                                     store::Reader& reader,
                                                     SeriesSource* series,
                                                     const Clock& clock) {
  if (!options.route_prefix.empty() && options.route_prefix.front() != '/') {
    return fail(ErrorCode::kInvalidArgument, "--web.route-prefix must start with a slash, got '{}'",
                options.route_prefix);
  }
  while (!options.route_prefix.empty() && options.route_prefix.back() == '/') {
    options.route_prefix.pop_back();
  }
  auto cors = Cors::create(options.cors_origin, options.user_headers);
  if (!cors) {
    return fail(std::move(cors).error());
  }
  return std::unique_ptr<ApiServer>(
      new ApiServer(std::move(options), std::move(*cors), reader, series, clock));
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
    if (request.method == "GET" || request.method == "OPTIONS") {
      target.route = find_route(path.substr(kApi.size()));
    }
    return target;
  }
  if (path == "/health") {
    target.health = true;
    return target;
  }
  const bool page = path == "/" || path == "/ui/";
  std::string_view file = path.starts_with("/ui/") ? path.substr(4) : path.substr(1);
  target.asset = webui::find(page ? "index.html" : file);
  target.landing = page && !target.asset;
  return target;
}

void ApiServer::call_route(const Route& route,
                           const net::Request& request,
                           net::Response& response) {
  Call call{.request = &request, .response = &response};
  if (route.caller != Caller::kAnyone) {
    call.identity = access::identify(*services_.reader, request.headers, options_.user_headers);
    if (call.identity.user.empty()) {
      answer_error(response, ApiErrorType::kUnauthorized, "no user identified");
      return;
    }
  }
  if (route.caller == Caller::kAdmin) {
    if (access::admin_area(call.identity) != access::Decision::kAllow) {
      answer_error(response, ApiErrorType::kForbidden,
                   "current user does not have admin privileges");
      return;
    }
    call.admin_route = true;
  }
  call.params = parse_params(request.query);
  route.handler(services_, call);
}

void ApiServer::handle(const net::Request& request, net::Response& response) {
  const std::string clean = clean_path(request.path);
  if (clean != request.path) {
    response.status = 301;
    response.set_header("Location",
                        encode_path(clean) + (request.query.empty() ? "" : "?" + request.query));
    return;
  }
  const Target target = find_target(request);
  if (!target.found()) {
    answer_not_found(response);
    return;
  }
  if (options_.max_requests > 0 && !limiter_.admit(request, response, services_.now_ms())) {
    return;
  }
  const bool preflight = request.method == "OPTIONS";
  if (target.route != nullptr) {
    if (!preflight) {
      call_route(*target.route, request, response);
    }
    cors_.add_headers(request, response);
  } else if (target.health) {
    answer_health(*services_.reader, response);
    cors_.add_headers(request, response);
  } else if (target.asset) {
    answer_asset(*target.asset, request, response);
  } else {
    answer_landing_page(response);
  }
}

}  // namespace ceems::api
