#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/profiles/flame.h"
#include "api/tsdb/series.h"
#include "base/result.h"
#include "config/yaml.h"
#include "net/client/client.h"

namespace ceems::api {

/// A Pyroscope, an entry of `ceems_api_server.profiles`.
struct ProfileServer {
  std::vector<std::string> clusters = {};  ///< whose profiles it has; empty: of all clusters
  std::string url = {};
  net::ClientOptions web = {};
};

/// Reads the list. Relative file names start at `directory`. Errors: kInvalidArgument with file,
/// line and key.
Result<std::vector<ProfileServer>> read_profile_servers(const config::Node& server,
                                                        const std::string& directory);

/// kInvalidArgument with file and line of `server` if an entry names a cluster that does not exist,
/// or if two have the same cluster.
Result<> check_profile_servers(const std::vector<ProfileServer>& servers,
                               const std::vector<std::string>& clusters,
                               const config::Node& server);

/// Whose profile to read, and from when to when (epoch ms).
struct ProfileRequest {
  std::string cluster_id = {};
  std::string uuid = {};
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
};

/// Reads the profile of a unit for its page. Safe for concurrent use.
class ProfileSource {
 public:
  virtual ~ProfileSource() = default;
  [[nodiscard]] virtual bool has(std::string_view cluster_id) const = 0;
  /// Where CPU time went in the period, without levels if nothing was profiled. kInvalidArgument
  /// for an id that no selector can name, kUnavailable or kTimeout if the server does not respond,
  /// kPermissionDenied if it refuses the request, kParse if it sends anything else.
  virtual Result<Flame> profile(const ProfileRequest& request) = 0;
};

/// Asks Pyroscope 1.0 or newer, with one call of at most 10 s and 4 MiB.
class PyroscopeSource final : public ProfileSource {
 public:
  static constexpr std::size_t kMaxNodes = 2000;

  /// Profiles of clusters that share a server are told apart by a label, as their series are.
  /// `servers` has passed check_profile_servers(). Passes on errors of net::Client.
  static Result<std::unique_ptr<PyroscopeSource>> create(std::vector<ProfileServer> servers,
                                                         const std::vector<std::string>& clusters,
                                                         const SeriesOptions& options);

  [[nodiscard]] bool has(std::string_view cluster_id) const override {
    return places_.contains(cluster_id);
  }
  Result<Flame> profile(const ProfileRequest& request) override;
  /// Makes the current and all later requests fail, for shutdown.
  void cancel();

 private:
  struct Place {
    std::shared_ptr<net::Client> client;
    std::string url;
    std::string cluster_label;  ///< empty: all profiles are of this cluster
  };
  using Places = std::map<std::string, Place, std::less<>>;
  explicit PyroscopeSource(Places places) : places_(std::move(places)) {}

  Places places_;
};

}  // namespace ceems::api
