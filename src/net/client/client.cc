#include "net/client/client.h"

#include <atomic>

#include <fmt/format.h>

#include "base/mutex.h"
#include "base/strings.h"
#include "crypto/base64.h"
#include "net/client/oauth2.h"
#include "net/client/tls_files.h"
#include "net/client/transfer.h"
#include "net/unix_url.h"
#include "os/secret.h"

namespace ceems::net {

using std::chrono::steady_clock;

namespace {

constexpr int kMaxRedirects = 10;

Result<> check_tls(const TlsOptions& tls) {
  for (const std::string& version : {tls.min_version, tls.max_version}) {
    if (!is_tls_version(version)) {
      return fail(ErrorCode::kInvalidArgument,
                  "TLS version '{}': expected TLS10, TLS11, TLS12 or TLS13", printable(version));
    }
  }
  const bool cert = !tls.cert.empty() || !tls.cert_file.empty();
  const bool key = !tls.key.empty() || !tls.key_file.empty();
  if (cert != key) {
    return fail(ErrorCode::kInvalidArgument,
                "a client certificate needs its key and a key its certificate");
  }
  auto files = TlsFiles(tls).read();
  return files ? Result<>() : fail(std::move(files).error());
}

bool is_clean(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// True if credentials for `first` may also be sent to `next`.
bool same_trust(const Url& first, const Url& next) {
  const bool upgrade =
      first.scheme == "http" && first.port == "80" && next.scheme == "https" && next.port == "443";
  return first.host == next.host &&
         (upgrade || (first.port == next.port && first.scheme == next.scheme));
}

/// A URL, and the unix socket through which to reach it, if any.
struct Target {
  Url url;
  std::string socket;

  /// For messages, like Url::shown().
  [[nodiscard]] std::string shown() const {
    return socket.empty() ? url.shown() : "unix://" + socket + ":" + url.path;
  }
  /// True if credentials for this target may also be sent to `next`.
  [[nodiscard]] bool trusts(const Url& next) const {
    return socket.empty() ? same_trust(url, next) : url.origin() == next.origin();
  }
};

Result<Target> read_target(const std::string& text, const std::string& socket) {
  UnixUrl place{.socket = socket, .http = text};
  if (is_unix_url(text)) {
    CEEMS_TRY(read, parse_unix_url(text, socket));
    place = std::move(read);
  }
  CEEMS_TRY(url, parse_url(place.http));
  return Target{.url = std::move(url), .socket = std::move(place.socket)};
}

/// How to receive a response while it arrives. Without a taker, the response is collected.
struct Streaming {
  const StreamTaker* taker = nullptr;
  std::chrono::milliseconds idle_timeout{0};
  std::stop_token stop;
};

void drop_header(Headers& headers, std::string_view name) {
  std::erase_if(headers,
                [name](const auto& header) { return to_lower(header.first) == to_lower(name); });
}

}  // namespace

struct Client::Impl {
  ClientOptions options;
  TransferPool pool;
  std::unique_ptr<TokenSource> tokens;
  TlsFiles tls_files;
  Mutex mutex;
  std::shared_ptr<const TlsOptions> last_tls CEEMS_GUARDED_BY(mutex);  // for kept connections

  explicit Impl(ClientOptions client_options)
      : options(std::move(client_options)), tls_files(options.tls) {
    if (options.oauth2) {
      tokens = std::make_unique<TokenSource>(*options.oauth2, pool);
    }
  }

  /// The TLS options with the current texts of the files. A connection that was made with older
  /// texts is not used again.
  Result<std::shared_ptr<const TlsOptions>> current_tls() {
    auto tls = tls_files.read();
    if (tls) {
      const MutexLock lock(mutex);
      if (last_tls && last_tls != *tls) {
        pool.drop_kept();
      }
      last_tls = *tls;
    }
    return tls;
  }

  /// The value of the Authorization field; empty if there is none.
  Result<std::string> authorization(const TransferRequest& request, Haste haste) {
    if (options.basic_auth) {
      CEEMS_TRY(user,
                os::read_secret(options.basic_auth->username, options.basic_auth->username_file));
      CEEMS_TRY(password,
                os::read_secret(options.basic_auth->password, options.basic_auth->password_file));
      return "Basic " + crypto::base64_encode(user + ":" + password);
    }
    if (options.authorization) {
      CEEMS_TRY(credentials, os::read_secret(options.authorization->credentials,
                                             options.authorization->credentials_file));
      return options.authorization->type + " " + credentials;
    }
    if (tokens) {
      return tokens->authorization(request, haste);
    }
    if (!request.url.user.empty() || !request.url.password.empty()) {
      return "Basic " + crypto::base64_encode(request.url.user + ":" + request.url.password);
    }
    return std::string();
  }

  /// The header fields that only the first host may receive.
  Result<Headers> private_headers(const TransferRequest& request,
                                  const Headers& given,
                                  Haste haste = Haste::kNone) {
    Headers all;
    for (const auto& [name, extra] : options.headers) {
      for (const auto& list : {extra.values, extra.secrets}) {
        for (const std::string& value : list) {
          all.emplace_back(name, value);
        }
      }
      for (const std::string& file : extra.files) {
        CEEMS_TRY(value, os::read_secret({}, file));
        all.emplace_back(name, std::move(value));
      }
    }
    if (find_header(given, "Authorization") == nullptr) {
      CEEMS_TRY(value, authorization(request, haste));
      if (!value.empty()) {
        all.emplace_back("Authorization", std::move(value));
      }
    }
    return all;
  }

  /// Reports that a request with these fields was answered with 401.
  void refused(const Headers& own) {
    const std::string* const value = tokens ? find_header(own, "Authorization") : nullptr;
    if (value != nullptr) {
      tokens->forget(*value);
    }
  }

  Result<ClientResponse> exchange(std::string method,
                                  const std::string& url,
                                  std::string_view content_type,
                                  std::string_view body,
                                  const Headers& given,
                                  const Streaming& streaming = {});
};

Result<ClientResponse> Client::Impl::exchange(std::string method,
                                              const std::string& url,
                                              std::string_view content_type,
                                              std::string_view body,
                                              const Headers& given,
                                              const Streaming& streaming) {
  CEEMS_TRY(first, read_target(url, options.unix_socket));
  const std::string place = fmt::format("{} {}", method, printable(first.shown(), 300));
  CEEMS_TRY_IN(place, tls, current_tls());
  TransferRequest request;
  request.method = std::move(method);
  request.url = first.url;
  request.body = body;
  request.tls = tls.get();
  request.proxy_url = options.proxy_url;
  request.no_proxy = options.no_proxy;
  request.proxy_from_environment = options.proxy_from_environment;
  for (const auto& [name, values] : options.proxy_connect_header) {
    for (const std::string& value : values) {
      request.proxy_headers.emplace_back(name, value);
    }
  }
  request.http2 = options.enable_http2;
  request.http2_prior_knowledge = options.http2_prior_knowledge;
  request.connect_timeout = options.connect_timeout;
  request.deadline = steady_clock::now() + options.timeout;
  request.max_response_bytes = options.max_response_bytes;
  request.stream = streaming.taker;
  request.idle_timeout = streaming.idle_timeout;
  request.stop = streaming.stop;

  CEEMS_TRY_IN(place, secret, private_headers(request, given));
  Headers headers = given;
  if (find_header(given, "User-Agent") == nullptr) {
    headers.emplace_back("User-Agent", options.user_agent);
  }
  if (!content_type.empty()) {
    headers.emplace_back("Content-Type", content_type);
  }
  TlsOptions foreign_tls = *tls;
  foreign_tls.server_name.clear();

  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    const bool trusted = first.trusts(request.url);
    request.unix_socket = trusted ? first.socket : "";
    request.addresses = options.addresses && request.url.host == first.url.host
                            ? options.addresses()
                            : std::vector<std::string>();
    request.headers = headers;
    if (trusted) {
      request.headers.insert(request.headers.end(), secret.begin(), secret.end());
    } else {
      for (const std::string_view name : {"Authorization", "Cookie", "Proxy-Authorization"}) {
        drop_header(request.headers, name);
      }
    }
    request.tls = trusted ? tls.get() : &foreign_tls;
    for (const auto& [name, value] : request.headers) {
      if (!is_clean(name) || !is_clean(value)) {
        return fail(ErrorCode::kInvalidArgument, "{}: header {} has a line end in it", place,
                    printable(name));
      }
    }
    CEEMS_TRY_IN(place, response, pool.run(request));
    if (response.status == 401 && trusted) {
      refused(secret);
    }
    const std::string* location = find_header(response.headers, "Location");
    if (!options.follow_redirects || !is_redirect(response.status) || location == nullptr) {
      return response;
    }
    auto next = resolve_url(request.url, *location);
    if (!next) {
      return fail(ErrorCode::kUnavailable, "{}: redirect to a {}", place, next.error().message);
    }
    request.url = *std::move(next);
    if (response.status <= 303 && request.method == "POST") {
      request.method = "GET";
      request.body = {};
      drop_header(headers, "Content-Type");
    }
  }
  return fail(ErrorCode::kUnavailable, "{}: more than {} redirects", place, kMaxRedirects);
}

Result<std::unique_ptr<Client>> Client::create(ClientOptions options) {
  const int kinds = static_cast<int>(options.basic_auth.has_value()) +
                    static_cast<int>(options.authorization.has_value()) +
                    static_cast<int>(options.oauth2.has_value());
  if (kinds > 1) {
    return fail(ErrorCode::kInvalidArgument,
                "only one of basic_auth, authorization and oauth2 can be used");
  }
  CEEMS_TRY(check_tls(options.tls));
  if (options.oauth2) {
    CEEMS_TRY_IN("oauth2", check_tls(options.oauth2->tls));
  }
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(std::move(options))));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Result<ClientResponse> Client::get(const std::string& url,
                                   const Headers& headers,
                                   std::stop_token stop) {
  return impl_->exchange("GET", url, {}, {}, headers, {.stop = std::move(stop)});
}

Result<ClientResponse> Client::post(const std::string& url,
                                    std::string_view content_type,
                                    std::string_view body,
                                    const Headers& headers,
                                    std::stop_token stop) {
  return impl_->exchange("POST", url, content_type, body, headers, {.stop = std::move(stop)});
}

Result<ClientResponse> Client::send_delete(const std::string& url, const Headers& headers) {
  return impl_->exchange("DELETE", url, {}, {}, headers);
}

Result<ClientResponse> Client::stream(const std::string& url,
                                      const Headers& headers,
                                      std::chrono::milliseconds idle_timeout,
                                      const StreamTaker& taker,
                                      std::stop_token stop) {
  return impl_->exchange("GET", url, {}, {}, headers,
                         {.taker = &taker, .idle_timeout = idle_timeout, .stop = std::move(stop)});
}

Result<Headers> Client::own_headers(const std::string& url) {
  CEEMS_TRY(target, read_target(url, impl_->options.unix_socket));
  TransferRequest request;
  request.url = std::move(target.url);
  request.proxy_url = impl_->options.proxy_url;
  request.no_proxy = impl_->options.no_proxy;
  request.proxy_from_environment = impl_->options.proxy_from_environment;
  request.http2 = impl_->options.enable_http2;
  request.connect_timeout = impl_->options.connect_timeout;
  request.deadline = steady_clock::now() + impl_->options.timeout;
  request.max_response_bytes = impl_->options.max_response_bytes;
  return impl_->private_headers(request, {}, Haste::kGreat);
}

void Client::refused(const Headers& own) {
  impl_->refused(own);
}

void Client::cancel() {
  impl_->pool.cancel();
}

}  // namespace ceems::net
