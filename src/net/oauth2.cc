#include "net/oauth2.h"

#include <algorithm>

#include <boost/json.hpp>

#include "base/strings.h"
#include "net/base64.h"
#include "os/secret.h"

namespace ceems::net {

namespace json = boost::json;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

constexpr seconds kEarly{10};               // a token about to end is not used any more
constexpr std::int64_t kLongest = 1 << 30;  // of a lifetime, so that adding never overflows

std::string form_value(std::string_view text) {
  return url_encode(text);
}

}  // namespace

Result<Token> parse_token(std::string_view text) {
  boost::system::error_code error;
  const json::value document = json::parse(json::string_view(text.data(), text.size()), error);
  if (error || !document.is_object()) {
    return fail(ErrorCode::kParse, "expected a JSON object with access_token");
  }
  const json::object& object = document.get_object();
  Token token;
  if (const auto* value = object.if_contains("access_token"); value && value->is_string()) {
    token.access_token = json::value_to<std::string>(*value);
  }
  if (token.access_token.empty()) {
    return fail(ErrorCode::kParse, "expected a JSON object with access_token");
  }
  if (const auto* value = object.if_contains("token_type"); value && value->is_string()) {
    const auto type = json::value_to<std::string>(*value);
    // Servers spell it in any case; resource servers want the registered spelling.
    token.type = type.empty() || to_lower(type) == "bearer" ? "Bearer" : type;
  }
  if (const auto* value = object.if_contains("expires_in")) {
    std::int64_t lifetime = 0;
    if (value->is_int64()) {
      lifetime = value->get_int64();
    } else if (value->is_double() && value->get_double() > 0 &&
               value->get_double() < static_cast<double>(kLongest)) {
      lifetime = static_cast<std::int64_t>(value->get_double());
    } else if (value->is_string()) {
      lifetime = parse_int<std::int64_t>(json::value_to<std::string>(*value)).value_or(0);
    }
    token.lifetime = seconds(std::clamp<std::int64_t>(lifetime, 0, kLongest));
  }
  return token;
}

Result<ClientResponse> TokenSource::ask(TransferPool& pool,
                                        TransferRequest& request,
                                        bool in_header) {
  auto secret = os::read_secret(options_.client_secret, options_.client_secret_file);
  if (!secret) {
    return fail(std::move(secret).error());
  }
  std::string form = "grant_type=client_credentials";
  if (!options_.scopes.empty()) {
    std::string scopes;
    for (const std::string& scope : options_.scopes) {
      scopes += (scopes.empty() ? "" : " ") + scope;
    }
    form += "&scope=" + form_value(scopes);
  }
  for (const auto& [name, value] : options_.endpoint_params) {
    form += "&" + form_value(name) + "=" + form_value(value);
  }
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded"},
                     {"Accept", "application/json"}};
  if (in_header) {
    request.headers.emplace_back(
        "Authorization",
        "Basic " + base64_encode(form_value(options_.client_id) + ":" + form_value(*secret)));
  } else {
    form += "&client_id=" + form_value(options_.client_id);
    form += "&client_secret=" + form_value(*secret);
  }
  request.method = "POST";
  request.body = form;
  const auto tls = tls_files_.read();
  if (!tls) {
    return fail(Error(tls.error()));
  }
  request.tls = tls->get();
  request.proxy_url = options_.proxy_url;
  request.no_proxy = options_.no_proxy;
  request.proxy_from_environment = options_.proxy_from_environment;
  request.proxy_headers.clear();
  request.unix_socket.clear();
  request.max_response_bytes = std::size_t{1} << 20U;
  return pool.run(request);
}

Result<std::string> TokenSource::authorization(TransferPool& pool, TransferRequest prototype) {
  const std::scoped_lock lock(mutex_);
  if (!authorization_.empty() && steady_clock::now() < ends_) {
    return authorization_;
  }
  auto url = parse_url(options_.token_url);
  if (!url) {
    return fail(std::move(url).error().with_context("OAuth2 token_url"));
  }
  const std::string place = "OAuth2 token from " + url->shown();
  prototype.url = *std::move(url);
  auto response = ask(pool, prototype, in_header_);
  if (response && (response->status == 400 || response->status == 401)) {
    auto other = ask(pool, prototype, !in_header_);
    if (other && other->status == 200) {
      in_header_ = !in_header_;
      response = std::move(other);
    }
  }
  if (!response) {
    return fail(std::move(response).error().with_context(place));
  }
  if (response->status != 200) {
    return fail(ErrorCode::kUnavailable, "{}: status {}", place, response->status);
  }
  auto token = parse_token(response->body);
  if (!token) {
    return fail(std::move(token).error().with_context(place));
  }
  authorization_ = token->type + " " + token->access_token;
  ends_ = token->lifetime.count() == 0 ? steady_clock::time_point::max()
                                       : steady_clock::now() + token->lifetime - kEarly;
  return authorization_;
}

void TokenSource::forget() {
  const std::scoped_lock lock(mutex_);
  authorization_.clear();
}

}  // namespace ceems::net
