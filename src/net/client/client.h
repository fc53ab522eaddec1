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

/// Prometheus' http_config
/// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#http_config).
/// Secrets stay here; they are never logged.
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
  /// Absolute path that all calls go to but redirects to another host; URLs say http://… all the
  /// same, or unix://… (unix_url.h) with this path, which they may continue without a colon.
  std::string unix_socket;
  /// Asked for each call, unless empty: numeric addresses of the host of its URL, which is then not
  /// looked up; where it gives none, and for a redirect elsewhere, it is.
  std::function<std::vector<std::string>()> addresses = {};
  bool http2_prior_knowledge = false;  ///< HTTP/2 without TLS and without asking (gRPC)
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds timeout{30000};      ///< whole exchange
  std::size_t max_response_bytes = 512U << 20U;  ///< more fails with kUnavailable, nothing is kept
};

struct ClientResponse {
  int status = 0;
  Headers headers;
  std::string body;
};

/// Takes an answer while it arrives, on the thread of the caller.
struct StreamTaker {
  std::function<void()> opened = {};  ///< the head of a 2xx has come; may be empty
  /// A part of the body, of any size. An error ends the exchange and becomes its result.
  std::function<Result<>(std::string_view)> part;
};

/// HTTP client on libcurl with kept connections, for http, https and unix URLs. Safe for concurrent
/// use. Redirects are followed ten times at most; credentials and extra headers go to the host of
/// the first URL only, never to another host or port, nor from https to http. Secret files are read
/// for each call, TLS files again when they have changed. No status is an error here; no answer is:
/// kTimeout, kUnavailable (refused, reset, TLS, too large), kInvalidArgument (bad URL). Messages
/// hold no URL user info, query or credentials.
class Client {
 public:
  /// kInvalidArgument for options that contradict each other, an unknown TLS version, or a TLS file
  /// that cannot be read.
  static Result<std::unique_ptr<Client>> create(ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Result<ClientResponse> get(const std::string& url, const Headers& headers = {});
  Result<ClientResponse> post(const std::string& url,
                              std::string_view content_type,
                              std::string_view body,
                              const Headers& headers = {});
  /// The method DELETE, without a body.
  Result<ClientResponse> send_delete(const std::string& url, const Headers& headers = {});
  /// GET of an answer that may never end (a watch): the body of a 2xx goes to `taker`, without
  /// limit of size or whole time, and that of the answer given is empty; other answers are given as
  /// by get(). kTimeout when nothing comes for `idle_timeout`; kUnavailable "cancelled" soon after
  /// `stop` is requested.
  Result<ClientResponse> stream(const std::string& url,
                                const Headers& headers,
                                std::chrono::milliseconds idle_timeout,
                                const StreamTaker& taker,
                                std::stop_token stop = {});
  /// What the options add to a request to `url` besides what is sent: http_headers, and
  /// Authorization with secrets as they are now. For programs that pass requests on by themselves.
  /// A token that has to be fetched first is waited for no longer than oauth2.h says.
  Result<Headers> own_headers(const std::string& url);
  /// What own_headers() gave was answered by 401: a token in it is not used again. Does not wait.
  void refused(const Headers& own);
  /// Makes calls under way and later ones fail with kUnavailable; for shutdown. Thread-safe.
  void cancel();

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::net
