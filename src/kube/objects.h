#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::kube {

// The parts of Kubernetes API objects that we use, read from JSON
// (https://kubernetes.io/docs/reference/kubernetes-api/). The users of a cluster write the content
// of its objects, so all sizes are bounded. Times are epoch milliseconds; 0 means not set.

using TextMap = std::map<std::string, std::string, std::less<>>;

/// Limits for annotations and labels, so that users cannot exhaust our memory. Longer values are
/// left out, and so are entries that would bring the keys and values of a pod above kMaxMapBytes.
inline constexpr std::size_t kMaxMapValueBytes = 1024;
inline constexpr std::size_t kMaxMapBytes = 8192;

struct Pod {
  std::string uid;  ///< by which the kubelet knows it; see static_pod_uid()
  std::string name;
  std::string name_space;
  std::string mirror_uid = {};  ///< its UID in the API server if that is another one
  TextMap annotations = {};     ///< without kubectl.kubernetes.io/last-applied-configuration
  TextMap labels = {};
  std::int64_t created_ms = 0;
  std::int64_t deletion_ms = 0;  ///< metadata.deletionTimestamp: when its grace period ends
  std::int64_t start_ms = 0;     ///< status.startTime
  std::int64_t finished_ms = 0;  ///< when the last container ended, if all have ended
  std::int64_t unready_ms = 0;   ///< when the condition Ready became False
  std::string phase = {};        ///< "Pending", "Running", "Succeeded", "Failed", "Unknown"
  std::string ready = {};        ///< "Ready", or why it is not; empty without such a condition
  std::string qos = {};          ///< status.qosClass
  /// Whether a container, not an init container, ended with the reason "OOMKilled": it used more
  /// memory than its limit, or the node had none left.
  bool out_of_memory = false;
  /// Limits by resource: of the pod (spec.resources) if it has any, otherwise the sums over its
  /// containers. Extended resources (GPUs) are the sums over the containers wherever one has a
  /// limit. Native sidecars count as containers, because they run as long as the pod: init
  /// containers with `restartPolicy: Always`. Other init containers do not count.
  std::map<std::string, double, std::less<>> limits = {};
  std::map<std::string, double, std::less<>> requests = {};  ///< in the same way
  bool has_claims = false;  ///< spec.resourceClaims: it has devices that no limit tells
  /// The limits, with the request of each container that has no limit instead of it.
  std::map<std::string, double, std::less<>> reserved = {};

  [[nodiscard]] bool finished() const { return phase == "Succeeded" || phase == "Failed"; }
};

struct PodList {
  std::vector<Pod> pods;
  std::size_t malformed = 0;     ///< items without UID, or that are not objects
  std::string next;              ///< token of the next part; empty if this is the last
  std::string resource_version;  ///< where a watch continues
};
/// Parses a PodList. Errors: kParse.
Result<PodList> parse_pod_list(std::string_view text);

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };
  Type type = Type::kError;
  Pod pod = {};  ///< set for kAdded, kModified and kDeleted
  std::string resource_version = {};
  int status = 0;            ///< for kError: an HTTP status; 410 means to list the pods again
  std::string message = {};  ///< for kError
};
/// Parses one line of a watch of pods. Errors: kParse if it is not an event, kNoData for an event
/// of a pod without UID.
Result<WatchEvent> parse_watch_line(std::string_view text);

/// A user that a role binding names, and the namespace of the binding.
struct BoundUser {
  std::string name_space;
  std::string user;
};
struct RoleBindingList {
  std::vector<BoundUser> users;  ///< subjects of kind User
  std::size_t bindings = 0;      ///< the number of all role bindings
  std::string next;
};
/// Parses a RoleBindingList. Errors: kParse.
Result<RoleBindingList> parse_role_bindings(std::string_view text);

/// Devices that a resource claim (Dynamic Resource Allocation) holds for a pod.
struct ClaimedDevices {
  std::string pod_uid;
  std::string driver;  ///< such as "gpu.nvidia.com"
  double count = 0;
};
struct ResourceClaimList {
  std::vector<ClaimedDevices> devices;  ///< a claim that several pods share counts for each
  std::string next;
};
/// Parses a ResourceClaimList of resource.k8s.io. Errors: kParse.
Result<ResourceClaimList> parse_resource_claims(std::string_view text);

/// The message of a Status object, which the API server sends with an error; empty for any other
/// text.
std::string status_message(std::string_view text);

/// Credentials printed by an exec plug-in (client.authentication.k8s.io ExecCredential).
struct ExecCredential {
  std::string token;
  std::string client_cert;
  std::string client_key;
  std::int64_t expires_ms = 0;  ///< 0: valid until the API server rejects them
};
/// Errors: kParse. They never quote the text, because it contains secrets.
Result<ExecCredential> parse_exec_credential(std::string_view text);

}  // namespace ceems::kube
