#include "ingest/manager/openstack/people.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/strings.h"

namespace ceems::ingest::openstack {
namespace {

constexpr std::size_t kMaxUsers = 200'000;
constexpr std::size_t kThreads = 8;
// If Keystone fails this many requests in a row, the remaining ones would fail as well.
constexpr int kMaxFailures = 10;
// After so many refreshes an owner whose record cannot be read no longer holds up the others.
constexpr int kMaxRefreshes = 3;
constexpr std::size_t kMaxLookups = 100;
constexpr std::size_t kMaxLookupsWithoutList = 5000;

/// Fetches the projects of each user in several threads.
class ProjectLookup {
 public:
  ProjectLookup(Client& client, const std::vector<Named>& users, const std::stop_token& stop)
      : client_(client), users_(users), stop_(stop), answers_(users.size()) {}

  /// Returns one answer per user, or nothing for the users that were skipped after too many
  /// failures or a stop.
  std::vector<std::optional<Result<std::vector<Named>>>> run() {
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 1; i < std::min(kThreads, users_.size()); ++i) {
        threads.emplace_back([this] { work(); });
      }
      work();
    }
    return std::move(answers_);
  }

 private:
  Result<std::vector<Named>> ask(const Named& user) {
    if (!user.enabled) {
      return {};
    }
    try {
      return client_.projects_of(user.id);
    } catch (const std::exception& exception) {
      return fail(ErrorCode::kInternal, "unexpected: {}", exception.what());
    }
  }
  void work() {
    while (!stop_.stop_requested() && failures_ < kMaxFailures) {
      const std::size_t next = next_++;
      if (next >= users_.size()) {
        return;
      }
      auto& answer = answers_[next];
      answer = ask(users_[next]);
      if (*answer || answer->error().code == ErrorCode::kNotFound) {
        failures_ = 0;
      } else {
        ++failures_;
      }
    }
  }

  Client& client_;
  const std::vector<Named>& users_;
  const std::stop_token& stop_;
  std::vector<std::optional<Result<std::vector<Named>>>> answers_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<int> failures_ = 0;  // in a row
};

}  // namespace

People::People(Client& client,
               const Clock& clock,
               std::chrono::milliseconds refresh_after,
               const std::string& plain_domain)
    : client_(client),
      clock_(clock),
      refresh_after_(refresh_after),
      users_(plain_domain),
      projects_(plain_domain) {}

void People::restore_names(std::optional<model::AccountNames> stored) {
  if (!stored) {
    users_.stored();
    projects_.stored();
    return;
  }
  users_.restore(std::move(stored->users));
  projects_.restore(std::move(stored->projects));
  name_everybody();
}

model::AccountNames People::new_names() const {
  return {.users = {.by_id = users_.fresh(), .without_id = {}},
          .projects = {.by_id = projects_.fresh(), .without_id = {}}};
}

bool People::knows(const Ids& ids) const {
  const auto known = [this](const std::set<std::string>& wanted, const NameBook& names) {
    return std::ranges::all_of(wanted, [&](const std::string& id) {
      return id.empty() || names.contains(id) || unknown_.contains(id);
    });
  };
  return known(ids.users, users_) && known(ids.projects, projects_);
}

Result<> People::refresh(const Ids& ids, const std::stop_token& stop) {
  const auto now = clock_.steady_now();
  if (read_at_ && now - *read_at_ < refresh_after_ && knows(ids)) {
    return {};
  }
  auto entries = fetch(stop);
  if (stop.stop_requested()) {
    return fail(ErrorCode::kUnavailable, "stopped");
  }
  if (entries) {
    entries_ = std::move(*entries);
    name_everybody();
  }
  // Units need the names of their owners only, so the lists never hold them up.
  unknown_.clear();
  failed_.clear();
  const std::size_t limit = entries ? kMaxLookups : kMaxLookupsWithoutList;
  auto done = look_up(ids.users, "user", users_, limit, entries.has_value());
  if (done) {
    done = look_up(ids.projects, "project", projects_, limit, entries.has_value());
  }
  if (done) {
    done = give_up_on_failed(ids, entries.has_value());
  }
  // An id that is not found may be that of a deleted user, if Keystone finds any at all.
  if (!entries && !unknown_.empty() && !found_one_) {
    unknown_.clear();
    return fail(std::move(entries).error().with_context("users and projects"));
  }
  if (!done) {
    return fail(
        std::move(entries ? done.error() : entries.error()).with_context("users and projects"));
  }
  if (!entries) {
    if (!std::exchange(without_list_, true)) {
      log::warn("the list of users cannot be read; owners are looked up one by one",
                {{"err", entries.error().message}});
    }
    return fail(std::move(entries).error().with_context("users and projects"));
  }
  without_list_ = false;
  read_at_ = now;
  return {};
}

Result<> People::look_up(const std::set<std::string>& ids,
                         std::string_view kind,
                         NameBook& names,
                         std::size_t limit,
                         bool give_up) {
  std::size_t asked = 0;
  for (const auto& id : ids) {
    if (id.empty() || names.contains(id)) {
      continue;
    }
    if (asked++ >= limit) {
      if (!give_up) {
        return fail(ErrorCode::kUnavailable, "more than {} owners to look up; others follow",
                    limit);
      }
      unknown_.insert(id);
      continue;
    }
    auto found = client_.find(kind, id);
    if (found) {
      found->id = id;
      names.give(*found);
      found_one_ = true;
    } else if (found.error().code == ErrorCode::kNotFound ||
               found.error().code == ErrorCode::kPermissionDenied) {
      unknown_.insert(id);
    } else {
      const auto failed = failed_.emplace(id, std::move(found).error()).first;
      if (failed_.size() >= kMaxFailures) {
        return fail(failed->second);
      }
    }
  }
  return {};
}

Result<> People::give_up_on_failed(const Ids& ids, bool answers) {
  std::erase_if(failures_, [this](const auto& entry) { return !failed_.contains(entry.first); });
  if (failed_.empty()) {
    return {};
  }
  const auto known = std::ranges::find_if(
      ids.users, [this](const std::string& id) { return !id.empty() && users_.contains(id); });
  answers = answers || (known != ids.users.end() && client_.find("user", *known));
  std::size_t left = 0;
  for (const auto& [id, error] : failed_) {
    if (answers && ++failures_[id] >= kMaxRefreshes) {
      if (failures_[id] == kMaxRefreshes) {
        log::warn("Keystone cannot read a user or project, whose servers have no such name",
                  {{"id", printable(id)}, {"err", error.message}});
      }
      unknown_.insert(id);
    } else {
      ++left;
    }
  }
  return left == 0 ? Result<>() : fail(failed_.begin()->second);
}

Result<std::vector<People::Entry>> People::fetch(const std::stop_token& stop) {
  CEEMS_TRY(users, client_.users());
  if (users.empty()) {
    return fail(ErrorCode::kUnavailable, "Keystone lists no users");
  }
  if (users.size() > kMaxUsers) {
    return fail(ErrorCode::kUnavailable, "Keystone lists more than {} users", kMaxUsers);
  }
  auto answers = ProjectLookup(client_, users, stop).run();
  if (stop.stop_requested()) {
    return fail(ErrorCode::kUnavailable, "stopped");
  }
  std::map<std::string, const Entry*> known;
  for (const auto& entry : entries_) {
    known.emplace(entry.user.id, &entry);
  }
  std::vector<Entry> entries;
  std::set<std::string_view> seen;
  std::size_t kept = 0;
  std::string first_error;
  bool any_project = false;
  for (std::size_t i = 0; i < users.size(); ++i) {
    const Named& user = users[i];
    auto& answer = answers[i];
    if (!answer) {
      return fail(ErrorCode::kUnavailable, "too many failures, the first: {}", first_error);
    }
    if (!seen.insert(user.id).second) {
      continue;
    }
    Entry entry{.user = user, .projects = {}};
    if (*answer) {
      entry.projects = std::move(**answer);
    } else if (answer->error().code != ErrorCode::kNotFound) {
      const auto before = known.find(user.id);
      if (before == known.end()) {
        return fail(std::move(*answer).error());
      }
      if (kept++ == 0) {
        first_error = answer->error().message;
      }
      entry.projects = before->second->projects;
    }
    any_project = any_project || !entry.projects.empty();
    entries.push_back(std::move(entry));
  }
  if (!any_project) {
    return fail(ErrorCode::kUnavailable, "Keystone lists no project for any user");
  }
  if (kept > 0 && !partial_) {
    log::warn("cannot read the projects of some users, keeping the known ones",
              {{"users", kept}, {"err", first_error}});
  }
  partial_ = kept > 0;
  return entries;
}

void People::name_everybody() {
  // The accounts of the plain domain first, so that their names are not taken by others.
  for (const bool plain : {true, false}) {
    for (const auto& entry : entries_) {
      if (users_.is_plain(entry.user) == plain) {
        users_.give(entry.user);
      }
      for (const auto& project : entry.projects) {
        if (projects_.is_plain(project) == plain) {
          projects_.give(project);
        }
      }
    }
  }
}

UsersAndProjects People::everybody() const {
  UsersAndProjects result;
  std::map<std::string, std::set<std::string>> members;  // names, by project id
  for (const auto& entry : entries_) {
    const std::string name = user_name(entry.user.id);
    std::set<std::string> projects;
    for (const auto& project : entry.projects) {
      projects.insert(project_name(project.id));
      members[project.id].insert(name);
    }
    result.users.push_back({.uid = entry.user.id,
                            .cluster_id = {},
                            .resource_manager = {},
                            .name = name,
                            .projects = {projects.begin(), projects.end()},
                            .tags = {}});
  }
  for (const auto& [id, names] : members) {
    result.projects.push_back({.uid = id,
                               .cluster_id = {},
                               .resource_manager = {},
                               .name = project_name(id),
                               .users = {names.begin(), names.end()},
                               .tags = {}});
  }
  return result;
}

}  // namespace ceems::ingest::openstack
