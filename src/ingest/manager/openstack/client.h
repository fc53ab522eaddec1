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

/// How requests reach Keystone and Nova; a seam for tests. Safe for concurrent use. Errors are
/// those of net::Client: no HTTP status is one.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Result<net::ClientResponse> get(const std::string& url, const net::Headers& headers) = 0;
  virtual Result<net::ClientResponse> post(const std::string& url,
                                           const std::string& body,
                                           const net::Headers& headers) = 0;
  /// Fails calls under way and later ones.
  virtual void cancel() = 0;
};

/// Over HTTP. Redirects are not followed: requests carry tokens and passwords in places where no
/// client knows them for such. Asks Nova for its latest microversion where the options name none.
/// kInvalidArgument as net::Client::create().
Result<std::unique_ptr<Transport>> http_transport(net::ClientOptions options,
                                                  std::chrono::milliseconds timeout);

struct Endpoints {
  std::string identity;                        ///< Keystone without /v3, no slash at the end
  std::map<std::string, std::string> compute;  ///< Nova with its version, by region ("": the only)
};

/// Keystone and the Novas of one cloud. Safe for concurrent use; calls block.
///
/// A token is kept until shortly before it ends and asked for by one thread at a time. An answer
/// 401 throws the token away and the request is made once more with a new one.
///
/// Errors: those of the transport; an HTTP status that was not expected is kPermissionDenied (401,
/// 403), kNotFound (404) or kUnavailable, with the service's own message; kParse for answers of
/// another form; kUnavailable for lists without end. Messages name method, host and path and hold
/// no credentials.
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
  };
  /// Live servers of all projects and regions, and those deleted since `since`, an ISO 8601 time
  /// with offset; each once, as deleted where a list says so. Flavors that are not embedded are
  /// looked up. kUnavailable also while a cell of Nova is down and its servers have no details.
  Result<Servers> servers(const std::string& since);

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
  /// Body of a 200 answer.
  Result<std::string> get(const std::string& url);
  /// All pages: `read` takes the body of one and gives the marker of the next, or nothing.
  Result<> get_pages(const std::string& url,
                     const Query& query,
                     const std::function<Result<std::string>(std::string_view)>& read);
  Result<> add_servers(const std::string& region,
                       const std::string& base,
                       const Query& query,
                       Servers& found,
                       std::map<std::string, std::size_t>& index);
  Result<> add_flavors(const std::string& region, const std::string& base, Servers& found);

  Endpoints endpoints_;
  std::string auth_;  // secret
  std::unique_ptr<Transport> transport_;
  const Clock& clock_;
  Mutex mutex_;
  Token token_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::ingest::openstack
