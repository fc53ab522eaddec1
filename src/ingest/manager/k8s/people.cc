#include "ingest/manager/k8s/people.h"

#include <algorithm>

#include "base/utf8.h"

namespace ceems::ingest {

Result<std::set<Membership>> users_of_file(const config::Node& document) {
  const config::Node users = document["users"];
  if (!users.is_map()) {
    return fail((users.present() ? users : document)
                    .error("expected a mapping 'users' with a list of users for each namespace"));
  }
  std::set<Membership> members;
  for (const auto& [name_space, node] : users.entries()) {
    if (node.is_null()) {
      continue;
    }
    CEEMS_TRY(names, node.as_string_list());
    for (const auto& name : names) {
      if (!name.empty() && !name_space.empty()) {
        members.insert({.project = clean_text(name_space), .user = clean_text(name)});
      }
    }
  }
  return members;
}

void PodMembers::saw(const kube::Pod& pod, const K8sUnitOptions& options) {
  auto owner = owner_of(pod, options);
  if (owner.project.empty()) {
    return;
  }
  auto& created = pods_[{.project = std::move(owner.project), .user = std::move(owner.user)}];
  created = std::max(created, pod.created_ms);
}

void PodMembers::listed(const std::set<Membership>& members, std::int64_t now_ms) {
  for (const auto& member : listed_) {
    if (!members.contains(member)) {
      revoked_[member] = now_ms;
    }
  }
  for (const auto& member : members) {
    revoked_.erase(member);
  }
  listed_ = members;
}

std::set<Membership> PodMembers::all() const {
  std::set<Membership> members = listed_;
  for (const auto& [member, created_ms] : pods_) {
    const auto revoked = revoked_.find(member);
    if (revoked == revoked_.end() || created_ms > revoked->second) {
      members.insert(member);
    }
  }
  return members;
}

}  // namespace ceems::ingest
