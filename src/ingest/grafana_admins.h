#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/name_map.h"
#include "ingest/admin_sync.h"
#include "net/client/client.h"

namespace ceems::ingest {

/// Administrators from the members of Grafana teams: the `login` of each entry of GET
/// {url}/api/teams/{id}/members
/// (https://grafana.com/docs/grafana/latest/developers/http_api/team/).
///
/// A team that cannot be read keeps its last known members, and AdminNames::all is false then.
/// Fails only if no team has ever been read. Sends no request before the first fetch(). Not
/// thread-safe.
class GrafanaAdmins final : public AdminSource {
 public:
  /// Sends a request to Grafana; tests replace it. Passes on errors of net::Client::get().
  using Get = std::function<Result<net::ClientResponse>(const std::string& url,
                                                        const std::stop_token& stop)>;

  /// `url` does not include /api. `names` maps logins to the names of users, as it does for
  /// requests that Grafana sends: otherwise the admins are people who do not exist.
  GrafanaAdmins(std::string url,
                std::vector<std::string> teams,
                Get get,
                config::NameMap names = {});

  Result<AdminNames> fetch(const std::stop_token& stop) override;

 private:
  [[nodiscard]] Result<std::set<std::string>> members(const std::string& team,
                                                      const std::stop_token& stop) const;

  std::string url_;
  std::vector<std::string> teams_;
  Get get_;
  config::NameMap names_;
  std::map<std::string, std::set<std::string>> members_;  // by team, as of its last success
  bool partial_ = false;  // some team could not be read; logged once
};

/// Creates the source over HTTP. kInvalidArgument as for net::Client::create().
Result<std::shared_ptr<AdminSource>> grafana_admins(const std::string& url,
                                                    std::vector<std::string> teams,
                                                    net::ClientOptions options,
                                                    config::NameMap names = {});

/// Returns the non-empty `login`s of a list of members. kParse for anything but a JSON list of
/// objects that each have such a string, because a list that cannot be parsed must not revoke
/// rights.
Result<std::set<std::string>> parse_team_members(std::string_view text);

}  // namespace ceems::ingest
