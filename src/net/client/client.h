#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http.h"

namespace ceems::net {

struct TlsOptions {
  std::string ca{}, ca_file{}, cert{}, cert_file{}, key{}, key_file{}, server_name{};
  bool insecure_skip_verify = false;
  std::string min_version{}, max_version{};  ///< "TLS12", ...; empty: library default
  bool operator==(const TlsOptions&) const = default;
};

/// The options of Prometheus' http_config
/// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#http_config). They
/// contain secrets, which are never logged.
struct ClientOptions {
  struct BasicAuth {
    std::string username{}, username_file{}, password{}, password_file{};
  };
  struct Authorization {
    std::string type = "Bearer";
    std::string credentials{}, credentials_file{};
  };
  struct OAuth2 {
    std::string client_id, client_secret, client_secret_file, token_url;
    std::vector<std::string> scopes;
    std::map<std::string, std::string> endpoint_params;
    TlsOptions tls;
    std::string proxy_url, no_proxy;
    bool proxy_from_environment = false;
  };
  struct ExtraHeader {
    std::vector<std::string> values{}, secrets{}, files{};
  };
  std::optional<BasicAuth> basic_auth;
  std::optional<Authorization> authorization;
  std::optional<OAuth2> oauth2;
  TlsOptions tls;
  bool follow_redirects = true;
  bool enable_http2 = true;
  std::string proxy_url, no_proxy;
  bool proxy_from_environment = false;
  std::map<std::string, std::vector<std::string>> proxy_connect_header;
  std::map<std::string, ExtraHeader> headers;

  std::string user_agent = "ceems";
  /// Absolute path of a unix socket to which all requests go, except redirects to another host.
  /// URLs are still http://…, or unix://… (unix_url.h) with this path, which may continue without a
  /// colon.
  std::string unix_socket;
  /// If set, it is called for each request and returns numeric addresses for the host of the URL,
  /// which is then not looked up. The host is looked up if there are none, and for a redirect to
  /// another host.
  std::function<std::vector<std::string>()> addresses = {};
  bool http2_prior_knowledge = false;  ///< HTTP/2 without TLS or an upgrade (gRPC)
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds timeout{30000};      ///< of the whole exchange
  std::size_t max_response_bytes = 512U << 20U;  ///< a larger body fails with kUnavailable
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;
};

/// Receives a response while it arrives, on the thread of the caller.
struct StreamTaker {
  std::function<void()> opened = {};  ///< called after the header of a 2xx; may be empty
  /// Called with each part of the body, of any size. An error ends the exchange and becomes its
  /// result.
  std::function<Result<>(std::string_view)> part;
};

/// An HTTP client based on libcurl that reuses connections, for http, https and unix URLs. Safe for
/// concurrent use.
///
/// It follows at most ten redirects. Credentials and extra headers are sent only to the scheme,
/// host and port of the first URL, and after an upgrade from http to https on the default ports.
/// Secret files are read for each call; TLS files are read again when they have changed.
///
/// No status is an error. A missing response is one: kTimeout, kUnavailable (refused, reset, TLS,
/// too large) or kInvalidArgument (bad URL). Messages contain no user info or query of a URL, and
/// no credentials.
class Client {
 public:
  /// Returns kInvalidArgument for options that contradict each other, an unknown TLS version, or a
  /// TLS file that cannot be read.
  static Result<std::unique_ptr<Client>> create(ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// This call and the next one fail with kUnavailable "cancelled" soon after `stop` is requested.
  Result<ClientResponse> get(const std::string& url,
                             const Headers& headers = {},
                             std::stop_token stop = {});
  Result<ClientResponse> post(const std::string& url,
                              std::string_view content_type,
                              std::string_view body,
                              const Headers& headers = {},
                              std::stop_token stop = {});
  /// Sends a DELETE request without a body.
  Result<ClientResponse> send_delete(const std::string& url, const Headers& headers = {});
  /// Sends a GET request whose response may never end, such as a watch. The body of a 2xx response
  /// goes to `taker`, with no limit on its size or total time, and the body of the returned
  /// response is empty. Other responses are returned as by get(). Returns kTimeout when nothing
  /// arrives for `idle_timeout`, and kUnavailable "cancelled" soon after `stop` is requested.
  Result<ClientResponse> stream(const std::string& url,
                                const Headers& headers,
                                std::chrono::milliseconds idle_timeout,
                                const StreamTaker& taker,
                                std::stop_token stop = {});
  /// The header fields that the options add to a request to `url`: http_headers, and Authorization
  /// with the current secrets. For programs that pass requests on themselves. If a token must be
  /// fetched first, the wait is limited as for Haste::kGreat (oauth2.h).
  Result<Headers> own_headers(const std::string& url);
  /// Reports that a request with these fields from own_headers() was answered with 401. A token
  /// among them is then replaced; see TokenSource::forget(). Does not block.
  void refused(const Headers& own);
  /// Makes current and later calls fail with kUnavailable, for shutdown. Thread-safe.
  void cancel();

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::net
