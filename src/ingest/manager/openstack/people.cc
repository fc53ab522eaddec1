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
constexpr std::size_t kMaxLookups = 100;
constexpr std::size_t kMaxOthers = 500'000;
constexpr std::string_view kDefaultDomain = "default";

/// Returns the names to use, by id. `others` keep their own name unless an item from another domain
/// now has it.
std::map<std::string, std::string> names_of(const std::map<std::string, Named>& items,
                                            const std::map<std::string, Named>& others) {
  std::map<std::string, int> uses;
  for (const auto& [id, item] : items) {
    ++uses[item.name];
  }
  std::map<std::string, std::string> names;
  std::map<std::string, std::string> domains;  // of the users or projects that have these names
  for (const bool plain : {true, false}) {
    for (const auto& [id, item] : items) {
      const bool keeps =
          uses[item.name] == 1 || item.domain_id.empty() || item.domain_id == kDefaultDomain;
      if (keeps != plain) {
        continue;
      }
      std::string name = plain ? item.name : item.name + "@" + item.domain_id;
      if (domains.contains(name)) {
        name = item.name + "@" + id;
      }
      domains.emplace(name, item.domain_id);
      names.emplace(id, std::move(name));
    }
  }
  for (const auto& [id, item] : others) {
    const auto taken = domains.find(item.name);
    const bool foreign = taken != domains.end() && taken->second != item.domain_id;
    names.emplace(id, foreign ? item.name + "@" + item.domain_id : item.name);
  }
  return names;
}

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

People::People(Client& client, const Clock& clock, std::chrono::milliseconds refresh_after)
    : client_(client), clock_(clock), refresh_after_(refresh_after) {}

bool People::knows(const Ids& ids) const {
  const auto known = [this](const std::set<std::string>& wanted, const Names& names) {
    return std::ranges::all_of(wanted, [&](const std::string& id) {
      return id.empty() || names.contains(id) || unknown_.contains(id);
    });
  };
  return known(ids.users, user_names_) && known(ids.projects, project_names_);
}

Result<> People::refresh(const Ids& ids, const std::stop_token& stop) {
  const auto now = clock_.steady_now();
  if (read_at_ && now - *read_at_ < refresh_after_ && knows(ids)) {
    return {};
  }
  auto entries = fetch(stop);
  if (!entries) {
    return fail(std::move(entries).error().with_context("users and projects"));
  }
  take(std::move(*entries));
  unknown_.clear();
  auto done = look_up(ids.users, "user", other_users_, user_names_);
  if (done) {
    done = look_up(ids.projects, "project", other_projects_, project_names_);
  }
  name_everybody();
  if (!done) {
    return fail(std::move(done).error().with_context("users and projects"));
  }
  read_at_ = now;
  return {};
}

Result<> People::look_up(const std::set<std::string>& ids,
                         std::string_view kind,
                         Items& others,
                         const Names& names) {
  std::size_t asked = 0;
  for (const auto& id : ids) {
    if (id.empty() || names.contains(id)) {
      continue;
    }
    if (asked++ == kMaxLookups) {
      unknown_.insert(id);
      continue;
    }
    auto found = client_.find(kind, id);
    if (found) {
      others.insert_or_assign(id, std::move(*found));
    } else if (found.error().code == ErrorCode::kNotFound ||
               found.error().code == ErrorCode::kPermissionDenied) {
      unknown_.insert(id);
    } else {
      return fail(std::move(found).error());
    }
  }
  return {};
}

Result<std::vector<People::Entry>> People::fetch(const std::stop_token& stop) {
  auto users = client_.users();
  if (!users) {
    return fail(std::move(users).error());
  }
  if (users->empty()) {
    return fail(ErrorCode::kUnavailable, "Keystone lists no users");
  }
  if (users->size() > kMaxUsers) {
    return fail(ErrorCode::kUnavailable, "Keystone lists more than {} users", kMaxUsers);
  }
  auto answers = ProjectLookup(client_, *users, stop).run();
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
  for (std::size_t i = 0; i < users->size(); ++i) {
    const Named& user = (*users)[i];
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

void People::take(std::vector<Entry> entries) {
  // The servers of users and projects that are gone still need their names.
  if (other_users_.size() + other_projects_.size() > kMaxOthers) {
    other_users_.clear();
    other_projects_.clear();
  }
  for (const auto& entry : entries_) {
    other_users_.insert_or_assign(entry.user.id, entry.user);
    for (const auto& project : entry.projects) {
      other_projects_.insert_or_assign(project.id, project);
    }
  }
  entries_ = std::move(entries);
  name_everybody();
}

void People::name_everybody() {
  Items users;
  Items projects;
  for (const auto& entry : entries_) {
    users.emplace(entry.user.id, entry.user);
    for (const auto& project : entry.projects) {
      projects.emplace(project.id, project);
    }
  }
  user_names_ = names_of(users, other_users_);
  project_names_ = names_of(projects, other_projects_);
}

std::string People::user_name(const std::string& id) const {
  const auto found = user_names_.find(id);
  return found == user_names_.end() ? std::string() : found->second;
}

std::string People::project_name(const std::string& id) const {
  const auto found = project_names_.find(id);
  return found == project_names_.end() ? std::string() : found->second;
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
