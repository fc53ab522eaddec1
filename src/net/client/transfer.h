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
  std::string port;    ///< always there
  std::string user, password;
  std::string path;  ///< with a leading slash, no query
  std::string full;  ///< without user, password and fragment

  [[nodiscard]] std::string origin() const { return scheme + "://" + host + ":" + port; }
  /// For messages: no user, password, query.
  [[nodiscard]] std::string shown() const { return origin() + path; }
};

/// kInvalidArgument for anything but an absolute http or https URL; the message does not repeat it.
Result<Url> parse_url(const std::string& text);
/// The absolute form of a Location field.
Result<Url> resolve_url(const Url& base, const std::string& reference);

/// One exchange without redirects and authentication of its own.
struct TransferRequest {
  std::string method = "GET";
  Url url;
  Headers headers;
  std::string_view body;
  const TlsOptions* tls = nullptr;  ///< texts only, its files are not read; null: libcurl's own
  std::string proxy_url, no_proxy;
  bool proxy_from_environment = false;
  Headers proxy_headers;
  bool http2 = true;
  bool http2_prior_knowledge = false;
  std::string unix_socket;
  std::vector<std::string> addresses;  ///< numeric; empty: the host is looked up
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::steady_clock::time_point deadline;
  std::size_t max_response_bytes = 0;
  /// Where the body of a 2xx goes. Then the deadline does not count but `idle_timeout` and `stop`.
  const StreamTaker* stream = nullptr;
  std::chrono::milliseconds idle_timeout{0};
  std::stop_token stop;
};

/// Kept libcurl handles with their connections. Safe for concurrent use.
class TransferPool {
 public:
  TransferPool();
  ~TransferPool();
  TransferPool(const TransferPool&) = delete;
  TransferPool& operator=(const TransferPool&) = delete;

  /// Errors as Client says.
  Result<ClientResponse> run(const TransferRequest& request);
  void cancel();
  /// Closes kept connections, so that the next one is made with what the TLS files hold now.
  void drop_kept();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// True for "", "TLS10" to "TLS13".
bool is_tls_version(std::string_view text);

}  // namespace ceems::net
