#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::kube {

// Objects of the Kubernetes API, as far as they are used, read from JSON
// (https://kubernetes.io/docs/reference/kubernetes-api/). What an object of a cluster holds was
// written by its users: bounds apply to all of it. Times are epoch milliseconds; 0: not there.

using TextMap = std::map<std::string, std::string, std::less<>>;

/// Longer values of annotations and labels are left out, and those after the first kMostMapBytes of
/// a pod, so that users cannot fill our memory.
inline constexpr std::size_t kLongestMapValue = 1024;
inline constexpr std::size_t kMostMapBytes = 8192;

struct Pod {
  std::string uid;
  std::string name;
  std::string name_space;
  TextMap annotations = {};  ///< without kubectl.kubernetes.io/last-applied-configuration
  TextMap labels = {};
  std::int64_t created_ms = 0;
  std::int64_t deletion_ms = 0;  ///< metadata.deletionTimestamp: when it is to be gone
  std::int64_t start_ms = 0;     ///< status.startTime
  std::int64_t finished_ms = 0;  ///< the last container's end, where all have ended
  std::int64_t unready_ms = 0;   ///< when the condition Ready became False
  std::string phase = {};        ///< "Pending", "Running", "Succeeded", "Failed", "Unknown"
  std::string ready = {};        ///< "Ready", or why it is not; empty without such a condition
  std::string qos = {};          ///< status.qosClass
  /// Limits by resource: those of the pod (spec.resources) where it has them, else the sum over its
  /// containers; extended resources (GPUs) always the sum over containers. Init containers do not
  /// count.
  std::map<std::string, double, std::less<>> limits = {};

  [[nodiscard]] bool finished() const { return phase == "Succeeded" || phase == "Failed"; }
};

struct PodList {
  std::vector<Pod> pods;
  std::size_t malformed = 0;     ///< items without UID, or that are no objects
  std::string next;              ///< token for the next part; empty: that was all
  std::string resource_version;  ///< where a watch goes on
};
/// A PodList. Errors: kParse.
Result<PodList> parse_pod_list(std::string_view text);

struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };
  Type type = Type::kError;
  Pod pod = {};  ///< of the first three
  std::string resource_version = {};
  int status = 0;            ///< of kError: as an HTTP status; 410: start again with a list
  std::string message = {};  ///< of kError
};
/// One line of a watch of pods. Errors: kParse for what is no event; an event of a pod without UID
/// is kNoData.
Result<WatchEvent> parse_watch_line(std::string_view text);

/// A user that a role binding names, and its namespace.
struct BoundUser {
  std::string name_space;
  std::string user;
};
struct RoleBindingList {
  std::vector<BoundUser> users;  ///< subjects of kind User
  std::size_t bindings = 0;      ///< all of them
  std::string next;
};
/// A RoleBindingList. Errors: kParse.
Result<RoleBindingList> parse_role_bindings(std::string_view text);

/// The message of a Status object, which the API server sends with an error; empty for anything
/// else.
std::string status_message(std::string_view text);

/// Credentials that an exec plug-in printed (client.authentication.k8s.io ExecCredential).
struct ExecCredential {
  std::string token;
  std::string client_cert;
  std::string client_key;
  std::int64_t expires_ms = 0;  ///< 0: good until the API server refuses them
};
/// Errors: kParse, without a word of the text.
Result<ExecCredential> parse_exec_credential(std::string_view text);

}  // namespace ceems::kube
