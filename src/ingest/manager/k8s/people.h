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

/// The users of namespaces in a file "users: {namespace: [user, ...]}". An empty mapping
/// is valid; a file without one (cut off while it was written) is an error. Errors name file and
/// line: kInvalidArgument.
Result<std::set<Membership>> users_of_file(const config::Node& document);

/// Memberships by pods: the owner of a pod is a member of its project as long as this program runs,
/// or until the lists (role bindings, users file) that named the owner no longer do. Not
/// thread-safe.
class PodMembers {
 public:
  void saw(const kube::Pod& pod, const K8sUnitOptions& options);
  /// What the lists say now, at `now_ms`. Members that vanish from them lose what pods created
  /// before gave them.
  void listed(const std::set<Membership>& members, std::int64_t now_ms);
  /// Of the lists and the pods.
  [[nodiscard]] std::set<Membership> all() const;

 private:
  std::map<Membership, std::int64_t> pods_;  ///< creation of the newest, epoch ms
  std::map<Membership, std::int64_t> revoked_;
  std::set<Membership> listed_;
};

}  // namespace ceems::ingest
