#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "net/http.h"
#include "tsdb/client.h"

namespace ceems::tsdb {

/// A TSDB for tests: a function returns the responses, and requests are recorded. Safe for
/// concurrent use.
class FakeTransport final : public Transport {
 public:
  struct Request {
    std::string method;
    std::string path;  ///< with the base URL, without the query
    std::vector<std::pair<std::string, std::string>> form;

    [[nodiscard]] std::string first(std::string_view name) const {
      for (const auto& [key, value] : form) {
        if (key == name) {
          return value;
        }
      }
      return {};
    }
  };
  using Answer = std::function<Result<net::ClientResponse>(const Request&)>;

  explicit FakeTransport(Answer answer) : answer_(std::move(answer)) {}

  Result<net::ClientResponse> get(const std::string& url) override { return serve("GET", url, ""); }
  Result<net::ClientResponse> post_form(const std::string& url, const std::string& form) override {
    return serve("POST", url, form);
  }
  void cancel() override {
    const MutexLock lock(mutex_);
    cancelled_ = true;
  }

  [[nodiscard]] std::vector<Request> requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }

  static net::ClientResponse ok(std::string body) {
    return {.status = 200, .headers = {}, .body = std::move(body)};
  }
  static net::ClientResponse status(int code, std::string body) {
    return {.status = code, .headers = {}, .body = std::move(body)};
  }

 private:
  /// Decodes without net::parse_query(), so that these tests do not depend on the HTTP library.
  static std::string decode(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '+') {
        out += ' ';
      } else if (text[i] == '%' && i + 2 < text.size()) {
        out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
        i += 2;
      } else {
        out += text[i];
      }
    }
    return out;
  }

  Result<net::ClientResponse> serve(std::string method,
                                    std::string_view url,
                                    const std::string& form) {
    Request request{.method = std::move(method), .path = {}, .form = {}};
    const std::size_t mark = url.find('?');
    request.path = std::string(url.substr(0, mark));
    std::string text(mark == std::string_view::npos ? "" : url.substr(mark + 1));
    text += (text.empty() || form.empty() ? "" : "&") + form;
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = std::min(rest.find('&'), rest.size());
      const std::string_view pair = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const std::size_t equals = std::min(pair.find('='), pair.size());
      request.form.emplace_back(decode(pair.substr(0, equals)),
                                decode(pair.substr(std::min(equals + 1, pair.size()))));
    }
    {
      const MutexLock lock(mutex_);
      requests_.push_back(request);
      if (cancelled_) {
        return fail(ErrorCode::kUnavailable, "cancelled");
      }
    }
    return answer_(request);
  }

  Answer answer_;
  mutable Mutex mutex_;
  std::vector<Request> requests_ CEEMS_GUARDED_BY(mutex_);
  bool cancelled_ CEEMS_GUARDED_BY(mutex_) = false;
};

}  // namespace ceems::tsdb
