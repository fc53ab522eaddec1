#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "ingest/manager/openstack/json.h"
#include "net/client/client.h"

namespace ceems::ingest::openstack {

/// The connection to Keystone and Nova; tests replace it. Safe for concurrent use. Passes on errors
/// of net::Client; no HTTP status counts as an error.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Result<net::ClientResponse> get(const std::string& url, const net::Headers& headers) = 0;
  virtual Result<net::ClientResponse> post(const std::string& url,
                                           const std::string& body,
                                           const net::Headers& headers) = 0;
  /// Makes current and later calls fail.
  virtual void cancel() = 0;
};

/// A transport over HTTP. It does not follow redirects, because requests carry tokens and passwords
/// in places that the HTTP client does not recognize as secret. Requests Nova's latest microversion
/// unless the options set one. kInvalidArgument as for net::Client::create().
Result<std::unique_ptr<Transport>> http_transport(net::ClientOptions options,
                                                  std::chrono::milliseconds timeout);

struct Endpoints {
  std::string identity;                        ///< base URL of Keystone, without /v3 and final /
  std::map<std::string, std::string> compute;  ///< versioned URLs of Nova by region; "": only one
};

/// Keystone and all Nova services of one cloud. Safe for concurrent use; calls block.
///
/// A token is kept until shortly before it expires, and only one thread at a time requests a new
/// one. After a 401 answer the token is dropped and the request is repeated once with a new token.
///
/// Passes on errors of the transport. An unexpected HTTP status is kPermissionDenied (401, 403),
/// kNotFound (404) or kUnavailable, with the service's own message. A malformed answer is kParse; a
/// list with too many pages is kUnavailable. Messages contain method, host and path, and no
/// credentials.
class Client {
 public:
  /// `auth`: JSON text of the `auth` object of a token request.
  Client(Endpoints endpoints,
         std::string auth,
         std::unique_ptr<Transport> transport,
         const Clock& clock);

  struct Servers {
    std::vector<Server> servers;
    std::size_t malformed = 0;
    std::string first_problem;
    std::string flavor_problem;  ///< why the flavors that are looked up cannot be read
  };
  /// The live servers of all projects and regions, and those deleted since `since`, an ISO 8601
  /// time with offset. Each server is returned once, as deleted if any list says so. Flavors that
  /// are not embedded in the server are looked up. kUnavailable also while a cell of Nova is down,
  /// because its servers then lack their details.
  Result<Servers> servers(const std::string& since);

  /// All flavors of a region, private ones included. kUnavailable for more than 20,000.
  Result<std::vector<Flavor>> flavors(const std::string& region);
  [[nodiscard]] std::vector<std::string> regions() const;

  Result<std::vector<Named>> users();
  Result<std::vector<Named>> projects_of(const std::string& user_id);
  /// One "user" or "project".
  Result<Named> find(std::string_view kind, const std::string& id);

  void cancel() { transport_->cancel(); }

 private:
  using Query = std::vector<std::pair<std::string, std::string>>;
  struct Token {
    std::string text;
    Clock::SteadyTime good_until;
  };

  Result<std::string> token();
  void forget(const std::string& token);
  Result<Token> request_token();
  /// Returns the body of a 200 answer.
  Result<std::string> get(const std::string& url);
  /// Fetches all pages. `read` parses the body of one and returns the marker of the next, empty
  /// after the last.
  Result<> get_pages(const std::string& url,
                     const Query& query,
                     const std::function<Result<std::string>(std::string_view)>& read);
  Result<> add_servers(const std::string& region,
                       const std::string& base,
                       const Query& query,
                       Servers& found,
                       std::map<std::string, std::size_t>& index);
  void add_flavors(const std::string& region, Servers& found);

  Endpoints endpoints_;
  std::string auth_;  // secret
  std::unique_ptr<Transport> transport_;
  const Clock& clock_;
  Mutex mutex_;
  Token token_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::ingest::openstack
