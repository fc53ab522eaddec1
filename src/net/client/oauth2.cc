#include "net/client/oauth2.h"

#include <algorithm>
#include <exception>
#include <stop_token>
#include <system_error>

#include <boost/json.hpp>

#include "base/mutex.h"
#include "base/strings.h"
#include "crypto/base64.h"
#include "os/secret.h"

namespace ceems::net {

namespace json = boost::json;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

constexpr seconds kEarly{10};    // at the end of its lifetime, a token is not used
constexpr seconds kRenewal{60};  // before the end, a new token is fetched
constexpr std::int64_t kMaxLifetimeSeconds = 1 << 30;  // so that sums do not overflow

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
    // Token servers spell it in any case, but resource servers expect the registered spelling.
    token.type = type.empty() || to_lower(type) == "bearer" ? "Bearer" : type;
  }
  if (const auto* value = object.if_contains("expires_in")) {
    std::int64_t lifetime = 0;
    if (value->is_int64()) {
      lifetime = value->get_int64();
    } else if (value->is_double() && value->get_double() > 0 &&
               value->get_double() < static_cast<double>(kMaxLifetimeSeconds)) {
      lifetime = static_cast<std::int64_t>(value->get_double());
    } else if (value->is_string()) {
      lifetime = parse_int<std::int64_t>(json::value_to<std::string>(*value)).value_or(0);
    }
    token.lifetime = seconds(std::clamp<std::int64_t>(lifetime, 0, kMaxLifetimeSeconds));
  }
  return token;
}

Result<ClientResponse> TokenSource::ask(TransferRequest& request, bool in_header) {
  CEEMS_TRY(secret, os::read_secret(options_.client_secret, options_.client_secret_file));
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
        "Authorization", "Basic " + crypto::base64_encode(form_value(options_.client_id) + ":" +
                                                          form_value(secret)));
  } else {
    form += "&client_id=" + form_value(options_.client_id);
    form += "&client_secret=" + form_value(secret);
  }
  request.method = "POST";
  request.body = form;
  CEEMS_TRY(tls, tls_files_.read());
  request.tls = tls.get();
  request.proxy_url = options_.proxy_url;
  request.no_proxy = options_.no_proxy;
  request.proxy_from_environment = options_.proxy_from_environment;
  request.max_response_bytes = std::size_t{1} << 20U;
  return pool_->run(request);
}

Result<Token> TokenSource::fetch(TransferRequest request) {
  CEEMS_TRY_IN("OAuth2 token_url", url, parse_url(options_.token_url));
  const std::string place = "OAuth2 token from " + url.shown();
  request.url = std::move(url);
  auto response = ask(request, in_header_);
  if (response && (response->status == 400 || response->status == 401)) {
    auto other = ask(request, !in_header_);
    if (other && other->status == 200) {
      in_header_ = !in_header_;
      response = std::move(other);
    }
  }
  if (!response) {
    Error error = std::move(response).error().with_context(place);
    error.code = error.code == ErrorCode::kTimeout ? ErrorCode::kUnavailable : error.code;
    return fail(std::move(error));
  }
  if (response->status != 200) {
    return fail(ErrorCode::kUnavailable, "{}: status {}", place, response->status);
  }
  CEEMS_TRY_IN(place, token, parse_token(response->body));
  return token;
}

void TokenSource::take(const Result<Token>& token) {
  const auto now = clock_->steady_now();
  if (token) {
    using std::chrono::milliseconds;
    const milliseconds lifetime = token->lifetime;
    const bool endless = lifetime.count() == 0;
    authorization_ = token->type + " " + token->access_token;
    ends_ = endless ? Clock::SteadyTime::max()
                    : now + lifetime - std::min(milliseconds(kEarly), lifetime / 4);
    renewed_ = endless ? ends_ : now + lifetime - std::min(milliseconds(kRenewal), lifetime / 2);
    last_ = authorization_;
  } else {
    failed_ = now;
    last_ = fail(Error(token.error()));
  }
}

void TokenSource::begin(const TransferRequest& model) {
  TransferRequest request;
  request.http2 = model.http2;
  request.connect_timeout = model.connect_timeout;
  request.deadline = model.deadline;
  began_ = steady_clock::now();
  try {
    // The previous thread has ended its fetch and is about to exit, so joining it here does not
    // block.
    thread_ = std::jthread([this, request = std::move(request)](std::stop_token stop) mutable {
      request.stop = std::move(stop);
      Result<Token> token = fail(ErrorCode::kInternal, "OAuth2 token");
      try {
        token = fetch(std::move(request));
      } catch (const std::exception& error) {  // such as a lack of memory
        token = fail(ErrorCode::kInternal, "OAuth2 token: {}", error.what());
      }
      const MutexLock lock(mutex_);
      take(token);
      fetching_ = false;
      ++fetches_;
      ended_.notify_all();
    });
    fetching_ = true;
  } catch (const std::system_error& error) {
    take(fail(ErrorCode::kUnavailable, "OAuth2 token: no thread to fetch it: {}", error.what()));
  }
}

Result<std::string> TokenSource::authorization(const TransferRequest& request, Haste haste) {
  const std::stop_callback on_stop(request.stop, [this] {
    const MutexLock lock(mutex_);
    ended_.notify_all();
  });
  MutexLock lock(mutex_);  // ends before the callback, which takes it, too
  const auto now = clock_->steady_now();
  const bool usable = !authorization_.empty() && now < ends_;
  const bool failed = !last_.has_value();
  const bool resting = failed && now < failed_ + times_.rest && (usable || haste == Haste::kGreat);
  if ((!usable || now >= renewed_) && !fetching_ && !resting) {
    begin(request);
  }
  if (usable) {
    return authorization_;
  }
  if (!fetching_) {
    return last_;
  }
  const auto until = haste == Haste::kNone
                         ? request.deadline
                         : began_ + (failed ? times_.wait_after_failure : times_.wait);
  const auto ended = [this, &request, before = fetches_]() CEEMS_REQUIRES(mutex_) {
    return fetches_ != before || request.stop.stop_requested();
  };
  const bool in_time = ended_.wait_until(lock, until, ended);
  if (request.stop.stop_requested()) {
    return fail(ErrorCode::kUnavailable, "cancelled");
  }
  if (!in_time) {
    return failed ? last_ : fail(ErrorCode::kUnavailable, "OAuth2 token: none came in time");
  }
  return last_;
}

void TokenSource::forget(std::string_view refused) {
  const MutexLock lock(mutex_);
  const auto now = clock_->steady_now();
  if (authorization_ == refused && now >= forgotten_) {
    authorization_.clear();
    forgotten_ = now + times_.rest;
  }
}

}  // namespace ceems::net
