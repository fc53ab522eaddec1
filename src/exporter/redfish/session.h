#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "exporter/redfish/config.h"
#include "net/client/client.h"

namespace ceems::exporter::redfish {

/// Requests to one Redfish service, logged in or not. Connections are kept. Redirects are followed
/// on the same host only, five times at most, as a token must not go elsewhere. Used by one thread
/// at a time, cancel() by any. Files that the configuration names (certificates, keys, passwords)
/// are read again when they change, with CAP_DAC_READ_SEARCH raised around the request: they may be
/// root's alone.
class Session {
 public:
  static constexpr std::size_t kMaxBody = std::size_t{2} << 20U;

  /// `config` with the host name filled in. Errors of net::Client::create().
  static Result<std::unique_ptr<Session>> create(Config config);
  /// Logs out.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The body of an answer with a good status. Errors: kPermissionDenied (401, 403), kNotFound
  /// (404), kInternal (any other status), kTimeout and kUnavailable (no answer). Messages hold no
  /// secrets.
  Result<std::string> get(std::string_view path);

  /// True where tokens are to be used.
  [[nodiscard]] bool wants_token() const;
  /// Gets a token from the collection of sessions; an old one is given back first.
  Result<> log_in(std::string_view sessions);

  /// Other requests go to this name or address of the BMC; before the first request.
  void set_hostname(std::string hostname) { config_.hostname = std::move(hostname); }

  /// Makes the request under way and later ones fail; logging out in the end still works.
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
  std::unique_ptr<net::Client> last_client_;  // for logging out in the end
  std::string token_;
  std::string session_;  // path of the session on the service
};

}  // namespace ceems::exporter::redfish
