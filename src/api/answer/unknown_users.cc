#include "api/answer/unknown_users.h"

#include "base/json.h"
#include "base/log.h"
#include "base/strings.h"

namespace ceems::api {
namespace {

constexpr std::string_view kBegin = R"({"status":"success")";
constexpr std::string_view kEnd = "}\n";

}  // namespace

void UnknownUsers::warn(const access::Identity& identity, net::Response& response) {
  // An answer that is streamed has rows of the user.
  if (identity.role != access::Role::kUser || response.status != 200 || response.next_chunk ||
      !response.body.starts_with(kBegin) || !response.body.ends_with(kEnd) ||
      !is_unknown(identity.user)) {
    return;
  }
  response.body.resize(response.body.size() - kEnd.size());
  response.body += R"(,"warnings":[)";
  append_json_string(
      response.body,
      "No cluster knows the user '" + printable(identity.user, 100) +
          "'. If you have units under another name, ask the operators of this server to map "
          "logins to the names of the cluster (identity.header.map).");
  response.body += ']';
  response.body += kEnd;
}

bool UnknownUsers::is_unknown(const std::string& user) {
  const std::uint64_t generation = reader_.generation();
  {
    const MutexLock lock(mutex_);
    if (known_.contains(user)) {
      return false;
    }
    const auto found = unknown_.find(user);
    if (found != unknown_.end() && found->second == generation) {
      return true;
    }
  }
  const auto knows = reader_.knows_user(user);
  if (!knows) {
    return false;  // the answer itself came from the same database, so this says little
  }
  const MutexLock lock(mutex_);
  if (*knows) {
    if (known_.size() >= kMaxNames) {
      known_.clear();
    }
    known_.insert(user);
    unknown_.erase(user);
    return false;
  }
  if (unknown_.size() >= kMaxNames) {
    unknown_.clear();
  }
  unknown_[user] = generation;
  if (logged_.size() < kMaxNames && logged_.insert(user).second) {
    log::warn(
        "no cluster knows a user, who therefore sees nothing: if logins differ from the names of "
        "the cluster, set identity.header.map",
        {{"user", printable(user, 100)}});
  }
  return true;
}

}  // namespace ceems::api
