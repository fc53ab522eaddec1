#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ingest/manager/manager.h"
#include "ingest/manager/openstack/client.h"

namespace ceems::ingest::openstack {

/// Users and projects of a Keystone, kept for `refresh_after`. Calls come from one thread at a
/// time.
///
/// A user whose projects cannot be read keeps the ones known before; where none are known the whole
/// refresh fails, because what that user may see is then unknown. A refresh in which Keystone lists
/// no user, or no project of any user, fails as well. So a failed or empty answer takes no rights
/// away, and users and projects that a complete answer lacks are removed.
///
/// Names are unique within a Keystone domain only. Where several users or projects share one, those
/// outside the domain "default" are called NAME@DOMAIN_ID.
class People {
 public:
  People(Client& client, const Clock& clock, std::chrono::milliseconds refresh_after);

  struct Ids {
    std::set<std::string> users, projects;
  };
  /// Reads everything anew if the last success is `refresh_after` old, or if `ids` holds one that
  /// is not known and was not looked for in vain since. Ids that no list has are looked up one by
  /// one. Errors: those of Client and kUnavailable as above; what was known stays.
  Result<> refresh(const Ids& ids, const std::stop_token& stop);

  /// Whether every id has a name, or was looked for in vain at the last refresh.
  [[nodiscard]] bool knows(const Ids& ids) const;

  /// Name for units and access; empty where Keystone does not know the id.
  [[nodiscard]] std::string user_name(const std::string& id) const;
  [[nodiscard]] std::string project_name(const std::string& id) const;

  /// Everybody as of the last success, for the store: users in Keystone's order, projects by id.
  [[nodiscard]] UsersAndProjects everybody() const;

 private:
  struct Entry {
    Named user;
    std::vector<Named> projects;
  };
  using Items = std::map<std::string, Named>;        // by id
  using Names = std::map<std::string, std::string>;  // by id
  Result<std::vector<Entry>> fetch(const std::stop_token& stop);
  void take(std::vector<Entry> entries);
  Result<> look_up(const std::set<std::string>& ids,
                   std::string_view kind,
                   Items& others,
                   const Names& names);
  void name_everybody();

  Client& client_;
  const Clock& clock_;
  const std::chrono::milliseconds refresh_after_;
  std::vector<Entry> entries_;
  Items other_users_, other_projects_;  // in no list, or not any more
  Names user_names_, project_names_;
  std::set<std::string> unknown_;  // ids that Keystone did not know at the last refresh
  std::optional<Clock::SteadyTime> read_at_;
  bool partial_ = false;  // some user kept old projects; logged once
};

}  // namespace ceems::ingest::openstack
