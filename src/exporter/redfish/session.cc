#include "exporter/redfish/session.h"

#include <algorithm>
#include <utility>

#include <boost/json.hpp>

#include "base/strings.h"
#include "crypto/base64.h"
#include "exporter/redfish/documents.h"
#include "net/client/transfer.h"

namespace ceems::exporter::redfish {
namespace {

constexpr int kMaxRedirects = 5;
constexpr std::chrono::milliseconds kLogoutTimeout{2000};

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Whether it is the same host, by the same protocol or by https instead of http.
bool is_same_host(const net::Url& from, const net::Url& to) {
  return from.origin() == to.origin() ||
         (from.host == to.host && from.scheme == "http" && to.scheme == "https");
}

Result<net::ClientResponse> check_status(net::ClientResponse response, std::string_view place) {
  switch (response.status) {
    case 200:
    case 201:
    case 202:
    case 204:
      return response;
    case 401:
    case 403:
      return fail(ErrorCode::kPermissionDenied, "{}: status {}", place, response.status);
    case 404:
      return fail(ErrorCode::kNotFound, "{}: status 404", place);
    default:
      return fail(ErrorCode::kInternal, "{}: status {}", place, response.status);
  }
}

}  // namespace

Result<std::unique_ptr<Session>> Session::create(Config config) {
  CEEMS_TRY(net::parse_url(config.base_url()));
  net::ClientOptions options = config.http;
  options.follow_redirects = false;
  options.user_agent = "ceems_exporter";
  options.max_response_bytes = kMaxBody;
  options.timeout = config.timeout;
  options.connect_timeout = std::min(options.connect_timeout, config.timeout);
  CEEMS_TRY(client, net::Client::create(options));
  options.timeout = std::min(config.timeout, kLogoutTimeout);
  CEEMS_TRY(last_client, net::Client::create(options));
  return std::unique_ptr<Session>(
      new Session(std::move(config), std::move(client), std::move(last_client)));
}

Session::Session(Config config,
                 std::unique_ptr<net::Client> client,
                 std::unique_ptr<net::Client> last_client)
    : config_(std::move(config)),
      client_(std::move(client)),
      last_client_(std::move(last_client)) {}

Session::~Session() {
  log_out(*last_client_);
}

bool Session::wants_token() const {
  return config_.use_session_token && !config_.username.empty();
}

net::Headers Session::headers() const {
  net::Headers all{{"Accept", "application/json"}, {"X-Redfish-Url", config_.bmc_url()}};
  if (!token_.empty()) {
    all.emplace_back("X-Auth-Token", token_);
  }
  if (!config_.use_session_token && !config_.username.empty() && !config_.password.empty()) {
    all.emplace_back("Authorization",
                     "Basic " + crypto::base64_encode(config_.username + ":" + config_.password));
  }
  return all;
}

Result<net::ClientResponse> Session::send(bool post,
                                          const std::string& url,
                                          std::string_view body) {
  return post ? client_->post(url, "application/json", body, headers())
              : client_->get(url, headers());
}

Result<net::ClientResponse> Session::request(bool post,
                                             std::string_view path,
                                             std::string_view body) {
  const std::string place = printable(path, 300);
  std::string url = config_.base_url() + std::string(path);
  auto here = net::parse_url(url);
  if (!here) {
    return fail(std::move(here).error().with_context(place));
  }
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    CEEMS_TRY(response, send(post, url, body));
    const std::string* location = net::find_header(response.headers, "Location");
    if (!is_redirect(response.status) || location == nullptr || !config_.http.follow_redirects) {
      return check_status(std::move(response), place);
    }
    if (post && response.status <= 303) {
      return fail(ErrorCode::kInternal,
                  "{}: the login is redirected (status {}); correct the protocol "
                  "and port in the configuration",
                  place, response.status);
    }
    auto next = net::resolve_url(*here, *location);
    if (!next) {
      return fail(ErrorCode::kInternal, "{}: redirect to a {}", place, next.error().message);
    }
    if (!is_same_host(*here, *next)) {
      return fail(ErrorCode::kInternal, "{}: redirect to another host is not followed", place);
    }
    here = std::move(next);
    url = here->full;
  }
  return fail(ErrorCode::kInternal, "{}: more than {} redirects", place, kMaxRedirects);
}

Result<std::string> Session::get(std::string_view path) {
  CEEMS_TRY(response, request(false, path, {}));
  return std::move(response.body);
}

Result<> Session::log_in(std::string_view sessions) {
  log_out(*client_);
  const std::string body = boost::json::serialize(
      boost::json::object{{"UserName", config_.username}, {"Password", config_.password}});
  CEEMS_TRY_IN("login", response, request(true, sessions, body));
  const std::string* token = net::find_header(response.headers, "X-Auth-Token");
  if (token == nullptr || token->empty()) {
    return fail(ErrorCode::kInternal, "login: the answer has no X-Auth-Token");
  }
  token_ = *token;
  const std::string* location = net::find_header(response.headers, "Location");
  session_ = location == nullptr ? std::string() : link_path(*location);
  return {};
}

void Session::log_out(net::Client& client) {
  if (!token_.empty() && !session_.empty()) {
    // Best effort, because the service ends idle sessions itself.
    static_cast<void>(client.send_delete(config_.base_url() + session_, headers()).has_value());
  }
  token_.clear();
  session_.clear();
}

}  // namespace ceems::exporter::redfish
