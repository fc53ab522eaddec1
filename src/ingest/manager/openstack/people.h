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
#include "ingest/manager/openstack/name_book.h"

namespace ceems::ingest::openstack {

/// Users and projects of Keystone, cached for `refresh_after`. Must be called from one thread at a
/// time.
///
/// If the projects of a user cannot be read, the user keeps those known before. If none are known,
/// the whole refresh fails, because it is unknown what that user may see. A refresh also fails if
/// Keystone lists no users at all, or no project for any user. So a failed or empty answer revokes
/// no access. Users and projects that are missing from a complete answer are removed.
///
/// Names are unique only within a Keystone domain, and only until an account is deleted or renamed.
/// Each id therefore keeps the name that it was given first (NameBook).
class People {
 public:
  People(Client& client,
         const Clock& clock,
         std::chrono::milliseconds refresh_after,
         const std::string& plain_domain);

  /// As ResourceManager::restore_names() and new_names().
  void restore_names(std::optional<model::AccountNames> stored);
  [[nodiscard]] model::AccountNames new_names() const;

  struct Ids {
    std::set<std::string> users, projects;
  };
  /// Reads everything again if the last success is at least `refresh_after` ago, or if `ids`
  /// contains an id that is neither known nor was already looked up in vain. Ids that are in no
  /// list are looked up one by one, all of them if the list cannot be read. An id whose record
  /// Keystone cannot read in three refreshes, while it answers otherwise, counts as unknown. Passes
  /// on errors of Client, and kUnavailable as described above; what was known before is kept.
  Result<> refresh(const Ids& ids, const std::stop_token& stop);

  /// Whether every id has a name or was looked up in vain in the last refresh.
  [[nodiscard]] bool knows(const Ids& ids) const;

  /// The name to use for units and access; empty if it has none and Keystone does
  /// not know the id.
  [[nodiscard]] std::string user_name(const std::string& id) const { return users_.find(id); }
  [[nodiscard]] std::string project_name(const std::string& id) const { return projects_.find(id); }

  /// All users and projects of the last successful refresh, for the store: users in Keystone's
  /// order, projects by id.
  [[nodiscard]] UsersAndProjects everybody() const;

 private:
  struct Entry {
    Named user;
    std::vector<Named> projects;
  };
  Result<std::vector<Entry>> fetch(const std::stop_token& stop);
  /// Beyond the limit, `give_up` takes ids for unknown; otherwise it is an error.
  Result<> look_up(const std::set<std::string>& ids,
                   std::string_view kind,
                   NameBook& names,
                   std::size_t limit,
                   bool give_up);
  /// `answers`: whether Keystone has answered something in this refresh.
  Result<> give_up_on_failed(const Ids& ids, bool answers);
  void name_everybody();

  Client& client_;
  const Clock& clock_;
  const std::chrono::milliseconds refresh_after_;
  std::vector<Entry> entries_;
  NameBook users_, projects_;
  std::set<std::string> unknown_;        // ids that Keystone did not know at the last refresh
  std::map<std::string, Error> failed_;  // ids whose look-up failed in this refresh
  std::map<std::string, int> failures_;  // of these ids in a row
  std::optional<Clock::SteadyTime> read_at_;
  bool found_one_ = false;     // Keystone has found an id that was looked up
  bool without_list_ = false;  // the list cannot be read; logged once
  bool partial_ = false;       // some users kept their old projects; logged once
};

}  // namespace ceems::ingest::openstack
