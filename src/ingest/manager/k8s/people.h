#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "base/result.h"
#include "config/yaml.h"
#include "ingest/manager/k8s/units.h"
#include "ingest/manager/manager.h"
#include "kube/objects.h"

namespace ceems::ingest {

/// Parses a file "users: {namespace: [user, ...]}". The mapping may be empty but not missing,
/// because a missing one may mean that the file was being written. Errors: kInvalidArgument with
/// file and line.
Result<std::set<Membership>> users_of_file(const config::Node& document);

/// Memberships from pods and from lists (role bindings, users file). The owner of a pod is a member
/// of its project as long as this program runs, or until a list that named the owner no longer
/// does. Not thread-safe.
class PodMembers {
 public:
  void saw(const kube::Pod& pod, const K8sUnitOptions& options);
  /// Records the members that the lists name at `now_ms`. Members that the lists no longer name
  /// also lose their memberships from pods created before that time.
  void listed(const std::set<Membership>& members, std::int64_t now_ms);
  /// The members according to the lists and the pods.
  [[nodiscard]] std::set<Membership> all() const;

 private:
  std::map<Membership, std::int64_t> pods_;  ///< creation time of the newest pod, epoch ms
  std::map<Membership, std::int64_t> revoked_;
  std::set<Membership> listed_;
};

}  // namespace ceems::ingest
