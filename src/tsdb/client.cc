#include "tsdb/client.h"

#include <algorithm>
#include <cmath>
#include <stop_token>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"

namespace ceems::tsdb {
namespace {

constexpr std::chrono::hours kSettingsLife{6};
constexpr std::chrono::seconds kSettingsRetry{30};
// Queries are batched, so responses stay far below this. A TSDB that sends more is broken or
// hostile.
constexpr std::size_t kMaxAnswerBytes = 64U << 20U;

thread_local std::stop_token current_stop;

class HttpTransport final : public Transport {
 public:
  explicit HttpTransport(std::unique_ptr<net::Client> client) : client_(std::move(client)) {}

  Result<net::ClientResponse> get(const std::string& url) override {
    return client_->get(url, {}, CancelScope::current());
  }
  Result<net::ClientResponse> post_form(const std::string& url, const std::string& form) override {
    return client_->post(url, "application/x-www-form-urlencoded", form, {},
                         CancelScope::current());
  }
  void cancel() override { client_->cancel(); }

 private:
  std::unique_ptr<net::Client> client_;
};

std::string encode(const std::vector<std::pair<std::string, std::string>>& form) {
  std::string text;
  for (const auto& [name, value] : form) {
    if (!text.empty()) {
      text += '&';
    }
    text += net::url_encode(name) + "=" + net::url_encode(value);
  }
  return text;
}

ErrorCode code_of_status(int status) {
  switch (status) {
    case 400:
    case 422:
      return ErrorCode::kInvalidArgument;
    case 401:
    case 403:
      return ErrorCode::kPermissionDenied;
    case 404:
    case 405:
      return ErrorCode::kNotFound;
    default:
      return ErrorCode::kUnavailable;
  }
}

/// Returns the body of a 2xx response, or the error.
Result<std::string> body_of(net::ClientResponse response) {
  if (response.status >= 200 && response.status < 300) {
    return std::move(response.body);
  }
  const ErrorCode code = code_of_status(response.status);
  const std::string start = printable(trim(std::string_view(response.body).substr(0, 400)), 200);
  // Prometheus reports errors as JSON, proxies in front of it as HTML or plain text.
  auto parsed = parse_string_list_answer(std::move(response.body));
  if (!parsed && parsed.error().message.starts_with("TSDB: ")) {
    return fail(code, "{} (HTTP status {})", parsed.error().message, response.status);
  }
  return fail(code, "TSDB: HTTP status {}: '{}'", response.status, start);
}

}  // namespace

CancelScope::CancelScope(std::stop_token stop)
    : outer_(std::exchange(current_stop, std::move(stop))) {}

CancelScope::~CancelScope() {
  current_stop = std::move(outer_);
}

const std::stop_token& CancelScope::current() {
  return current_stop;
}

Result<std::unique_ptr<Transport>> http_transport(net::ClientOptions options) {
  if (options.user_agent == net::ClientOptions{}.user_agent) {
    options.user_agent = "ceems/tsdb";
  }
  options.max_response_bytes = std::min(options.max_response_bytes, kMaxAnswerBytes);
  CEEMS_TRY(client, net::Client::create(std::move(options)));
  return std::make_unique<HttpTransport>(std::move(client));
}

Client::Client(std::string url, std::unique_ptr<Transport> transport, const Clock& clock)
    : url_(std::move(url)),
      transport_(std::move(transport)),
      clock_(clock),
      next_fetch_(clock.steady_now()) {
  while (url_.ends_with('/')) {
    url_.pop_back();
  }
}

Result<std::string> Client::post(std::string_view path, const Form& form) {
  const std::string url = url_ + std::string(path);
  const std::string text = encode(form);
  auto response = transport_->post_form(url, text);
  // Read-only proxies reject POST. Prometheus's own clients fall back to GET as well.
  if (response && (response->status == 405 || response->status == 501)) {
    response = transport_->get(url + "?" + text);
  }
  if (!response) {
    return fail(std::move(response).error().with_context("TSDB"));
  }
  return body_of(std::move(*response));
}

Result<QueryAnswer> Client::query_typed(const InstantQuery& query, ResultType expected) {
  Form form{{"query", query.query}, {"time", seconds_text(query.time_ms)}};
  if (query.lookback.count() > 0) {
    form.emplace_back("lookback_delta", duration_text(query.lookback));
  }
  if (query.timeout.count() > 0) {
    form.emplace_back("timeout", duration_text(query.timeout));
  }
  CEEMS_TRY(body, post("/api/v1/query", form));
  CEEMS_TRY(answer, parse_query_answer(std::move(body), query.max_series));
  if (query.complete && !answer.incomplete.empty()) {
    return fail(ErrorCode::kUnavailable, "TSDB: incomplete response: {}", answer.incomplete);
  }
  // An empty result is accepted whatever its type.
  if (answer.type != expected && !answer.series.empty()) {
    return fail(ErrorCode::kParse, "TSDB response: expected a {}, got a {}", to_string(expected),
                to_string(answer.type));
  }
  return answer;
}

Result<QueryAnswer> Client::query(const InstantQuery& query) {
  return query_typed(query, ResultType::kVector);
}

Result<QueryAnswer> Client::query_samples(const InstantQuery& query) {
  return query_typed(query, ResultType::kMatrix);
}

Result<QueryAnswer> Client::query_range(const std::string& query,
                                        std::int64_t start_ms,
                                        std::int64_t end_ms,
                                        std::chrono::milliseconds step,
                                        std::chrono::milliseconds lookback) {
  Form form{{"query", query},
            {"start", seconds_text(start_ms)},
            {"end", seconds_text(end_ms)},
            {"step", seconds_text(step.count())}};
  if (lookback.count() > 0) {
    form.emplace_back("lookback_delta", duration_text(lookback));
  }
  CEEMS_TRY(body, post("/api/v1/query_range", form));
  auto answer = parse_query_answer(std::move(body));
  if (answer && answer->type != ResultType::kMatrix && !answer->series.empty()) {
    return fail(ErrorCode::kParse, "TSDB response: expected a matrix, got a {}",
                to_string(answer->type));
  }
  return answer;
}

Result<std::vector<Labels>> Client::series(const std::vector<std::string>& matchers,
                                           std::int64_t start_ms,
                                           std::int64_t end_ms) {
  Form form{{"start", seconds_text(start_ms)}, {"end", seconds_text(end_ms)}};
  for (const auto& matcher : matchers) {
    form.emplace_back("match[]", matcher);
  }
  CEEMS_TRY(body, post("/api/v1/series", form));
  return parse_series_answer(std::move(body));
}

Result<std::vector<std::string>> Client::label_names(const std::vector<std::string>& matchers,
                                                     std::int64_t start_ms,
                                                     std::int64_t end_ms) {
  Form form{{"start", seconds_text(start_ms)}, {"end", seconds_text(end_ms)}};
  for (const auto& matcher : matchers) {
    form.emplace_back("match[]", matcher);
  }
  CEEMS_TRY(body, post("/api/v1/labels", form));
  return parse_string_list_answer(std::move(body));
}

Result<std::string> Client::fetch(const std::string& path_and_query) {
  CEEMS_TRY_IN("TSDB", response, transport_->get(url_ + path_and_query));
  return body_of(std::move(response));
}

Result<std::vector<std::string>> Client::label_values(std::string_view label,
                                                      const std::vector<std::string>& matchers,
                                                      std::int64_t start_ms,
                                                      std::int64_t end_ms) {
  Form form{{"start", seconds_text(start_ms)}, {"end", seconds_text(end_ms)}};
  for (const auto& matcher : matchers) {
    form.emplace_back("match[]", matcher);
  }
  CEEMS_TRY(body, fetch(fmt::format("/api/v1/label/{}/values?{}", label, encode(form))));
  auto values = parse_string_list_answer(std::move(body));
  if (values) {
    std::ranges::sort(*values);  // a proxy that merges responses may not sort them
  }
  return values;
}

Result<std::vector<Target>> Client::targets() {
  CEEMS_TRY(body, fetch("/api/v1/targets?state=active"));
  return parse_targets_answer(std::move(body));
}

Result<> Client::delete_series(const std::vector<std::string>& matchers,
                               std::int64_t start_ms,
                               std::int64_t end_ms) {
  return delete_matching(matchers,
                         {{"start", seconds_text(start_ms)}, {"end", seconds_text(end_ms)}});
}

Result<> Client::delete_whole_series(const std::vector<std::string>& matchers) {
  return delete_matching(matchers, {});
}

Result<> Client::delete_matching(const std::vector<std::string>& matchers, const Form& range) {
  if (matchers.empty()) {
    return fail(ErrorCode::kInvalidArgument, "TSDB: refusing to delete series without a matcher");
  }
  Form form;
  for (const auto& matcher : matchers) {
    form.emplace_back("match[]", matcher);
  }
  form.insert(form.end(), range.begin(), range.end());
  CEEMS_TRY_IN(
      "TSDB: deleting series", response,
      transport_->post_form(url_ + "/api/v1/admin/tsdb/delete_series?" + encode(form), ""));
  if (response.status != 204) {
    CEEMS_TRY_IN("deleting series", body_of(std::move(response)));
    return fail(ErrorCode::kParse, "TSDB: deleting series: expected HTTP status 204");
  }
  return {};
}

bool Client::fetch_settings(Settings& settings) {
  bool answered = true;
  // A missing endpoint or an unexpected response is not a failure, and its settings keep their
  // values.
  const auto status = [&](std::string_view name) -> Labels {
    auto response = transport_->get(url_ + "/api/v1/status/" + std::string(name));
    if (!response || response->status >= 500 || response->status == 429) {
      answered = false;
      // A caller that has left says nothing about the TSDB.
      if (!CancelScope::cancelled() && !settings_failed_.exchange(true)) {
        log::warn("cannot read the settings of the TSDB, using the last known ones",
                  {{"endpoint", name},
                   {"err", response ? fmt::format("HTTP status {}", response->status)
                                    : response.error().message}});
      }
      return {};
    }
    auto members = parse_status_answer(std::move(response->body));
    if (!members) {
      log::debug("this endpoint of the TSDB returned no settings",
                 {{"endpoint", name}, {"err", members.error().message}});
      return {};
    }
    return std::move(*members);
  };
  apply_config(status("config").get("yaml"), settings);
  if (answered) {
    const Labels flags = status("flags");
    for (const auto& [name, value] : flags.entries()) {
      apply_flag(name, value, settings);
    }
  }
  if (answered) {
    apply_retention(status("runtimeinfo").get("storageRetention"), settings);
  }
  if (answered && settings_failed_.exchange(false)) {
    log::info("the settings of the TSDB can be read again");
  }
  return answered;
}

Settings Client::settings() {
  {
    const MutexLock lock(mutex_);
    if (clock_.steady_now() < next_fetch_) {
      return settings_;
    }
    // Meanwhile other threads use the known settings.
    next_fetch_ = clock_.steady_now() + kSettingsRetry;
  }
  Settings fresh;
  const bool answered = fetch_settings(fresh);
  const MutexLock lock(mutex_);
  if (answered) {
    settings_ = fresh;
    next_fetch_ = clock_.steady_now() + kSettingsLife;
  } else if (CancelScope::cancelled()) {
    next_fetch_ = {};  // the next caller asks again
  }
  return settings_;
}

bool takes_no_range(const Error& error) {
  // "start and end aren't supported. Remove these args from the query in order to delete all the
  // matching metrics"; newer versions print their values.
  return error.code == ErrorCode::kInvalidArgument &&
         error.message.find("aren't supported") != std::string::npos &&
         error.message.find("start") != std::string::npos &&
         error.message.find("end") != std::string::npos;
}

std::string seconds_text(std::int64_t milliseconds) {
  std::string text = fmt::format("{}{}.{:03}", milliseconds < 0 ? "-" : "",
                                 std::abs(milliseconds / 1000), std::abs(milliseconds % 1000));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) {
    text.pop_back();
  }
  return text;
}

std::string duration_text(std::chrono::milliseconds duration) {
  if (duration.count() % 1000 == 0) {
    return fmt::format("{}s", duration.count() / 1000);
  }
  return fmt::format("{}ms", duration.count());
}

std::string quote_text(std::string_view text) {
  std::string quoted;
  quoted.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '\\':
        quoted += "\\\\";
        break;
      case '"':
        quoted += "\\\"";
        break;
      case '\n':
        quoted += "\\n";
        break;
      default:
        quoted += c;
    }
  }
  return quoted;
}

std::string exact_regex(const std::vector<std::string>& texts) {
  std::string regex;
  for (const auto& text : texts) {
    if (!regex.empty()) {
      regex += '|';
    }
    for (const char c : text) {
      if (std::string_view(".+*?()|[]{}$").find(c) != std::string_view::npos) {
        regex.append({'[', c, ']'});
      } else {
        regex.append(c == '\\' || c == '^' ? "\\" : "") += c;
      }
    }
  }
  return regex;
}

}  // namespace ceems::tsdb
