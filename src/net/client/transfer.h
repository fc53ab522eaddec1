#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/client/client.h"

namespace ceems::net {

struct Url {
  std::string scheme;  ///< "http" or "https"
  std::string host;    ///< IPv6 in brackets
  std::string port;    ///< never empty
  std::string user, password;
  std::string path;  ///< with a leading slash, no query
  std::string full;  ///< without user, password and fragment

  [[nodiscard]] std::string origin() const { return scheme + "://" + host + ":" + port; }
  /// For messages: without user, password and query.
  [[nodiscard]] std::string shown() const { return origin() + path; }
};

/// Parses an absolute http or https URL. Returns kInvalidArgument for anything else; the message
/// does not repeat the text.
Result<Url> parse_url(const std::string& text);
/// Resolves the value of a Location field against `base`.
Result<Url> resolve_url(const Url& base, const std::string& reference);

/// One HTTP exchange. It does not follow redirects and does not add authentication.
struct TransferRequest {
  std::string method = "GET";
  Url url;
  Headers headers;
  std::string_view body;
  const TlsOptions* tls = nullptr;  ///< only its texts, not its files; null: libcurl's defaults
  std::string proxy_url, no_proxy;
  bool proxy_from_environment = false;
  Headers proxy_headers;
  bool http2 = true;
  bool http2_prior_knowledge = false;
  std::string unix_socket;
  std::vector<std::string> addresses;  ///< numeric; if empty, the host is looked up
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::steady_clock::time_point deadline;
  std::size_t max_response_bytes = 0;
  /// Receives the body of a 2xx response. If set, `idle_timeout` applies instead of the deadline.
  const StreamTaker* stream = nullptr;
  std::chrono::milliseconds idle_timeout{0};
  std::stop_token stop;
};

/// A pool of libcurl handles with their connections. Safe for concurrent use.
class TransferPool {
 public:
  TransferPool();
  ~TransferPool();
  TransferPool(const TransferPool&) = delete;
  TransferPool& operator=(const TransferPool&) = delete;

  /// Passes on errors of Client.
  Result<ClientResponse> run(const TransferRequest& request);
  void cancel();
  /// Closes idle connections, so that the next request uses the current TLS files.
  void drop_kept();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// True for "", "TLS10" to "TLS13".
bool is_tls_version(std::string_view text);

}  // namespace ceems::net
