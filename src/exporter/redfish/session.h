#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "exporter/redfish/config.h"
#include "net/client/client.h"

namespace ceems::exporter::redfish {

/// Requests to one Redfish service, with or without a login. Connections are kept open. Redirects
/// are followed only on the same host and at most five times, because a token must not go
/// elsewhere. Files named by the configuration (certificates, keys, passwords) are read again when
/// they change, with CAP_DAC_READ_SEARCH raised during the request, because only root may be able
/// to read them. Used by one thread at a time; cancel() may be called by any thread.
class Session {
 public:
  static constexpr std::size_t kMaxBody = std::size_t{2} << 20U;

  /// `config` must have a hostname. Passes on errors of net::Client::create().
  static Result<std::unique_ptr<Session>> create(Config config);
  /// Logs out.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The body of a successful answer. Errors: kPermissionDenied (401, 403), kNotFound (404),
  /// kInternal (any other status), kTimeout and kUnavailable (no answer). Messages contain no
  /// secrets.
  Result<std::string> get(std::string_view path);

  /// Whether the configuration wants tokens.
  [[nodiscard]] bool wants_token() const;
  /// Gets a token from the collection of sessions. An old one is deleted first.
  Result<> log_in(std::string_view sessions);

  /// Sets the name or address of the BMC for all requests. Call it before the first request.
  void set_hostname(std::string hostname) { config_.hostname = std::move(hostname); }

  /// Makes the request in progress and later ones fail. Logging out at the end still works.
  void cancel() { client_->cancel(); }

 private:
  Session(Config config,
          std::unique_ptr<net::Client> client,
          std::unique_ptr<net::Client> last_client);
  [[nodiscard]] net::Headers headers() const;
  Result<net::ClientResponse> request(bool post, std::string_view path, std::string_view body);
  Result<net::ClientResponse> send(bool post, const std::string& url, std::string_view body);
  void log_out(net::Client& client);

  Config config_;
  std::unique_ptr<net::Client> client_;
  std::unique_ptr<net::Client> last_client_;  // for logging out at the end
  std::string token_;
  std::string session_;  // path of the session on the service
};

}  // namespace ceems::exporter::redfish
