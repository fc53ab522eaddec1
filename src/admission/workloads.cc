#include "admission/workloads.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace ceems::admission {
namespace {

constexpr std::size_t kMaxPathParts = 16;

bool is_name(std::string_view text) {
  return has_only_words(text, "-.");
}

}  // namespace

std::vector<Workload> builtin_workloads() {
  std::vector<Workload> all;
  for (const char* const kind : {"Deployment", "StatefulSet", "DaemonSet"}) {
    all.push_back({.group = "apps", .kind = kind, .path = {"spec", "template"}, .builtin = true});
  }
  all.push_back({.group = "batch", .kind = "Job", .path = {"spec", "template"}, .builtin = true});
  all.push_back({.group = "batch",
                 .kind = "CronJob",
                 .path = {"spec", "jobTemplate", "spec", "template"},
                 .builtin = true,
                 .made = {"spec", "jobTemplate"}});
  all.push_back({.group = "apps", .kind = "ReplicaSet", .path = {"spec", "template"}});
  all.push_back({.group = "", .kind = "ReplicationController", .path = {"spec", "template"}});
  // A StatefulSet or DaemonSet takes the template of a revision for pods that are rolled back, or
  // that an update in parts has not reached.
  all.push_back(
      {.group = "apps", .kind = "ControllerRevision", .path = {"data", "spec", "template"}});
  return all;
}

Result<Workload> parse_workload(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  const std::string_view path = text.substr(std::min(name.size() + 1, text.size()));
  const std::size_t slash = name.find('/');
  Workload workload;
  if (slash != std::string_view::npos) {
    workload.group = name.substr(0, slash);
    workload.kind = name.substr(slash + 1);
  }
  if (path.starts_with('/')) {
    for (const std::string_view part : split(path.substr(1), '/')) {
      workload.path.emplace_back(part);
    }
  }
  const bool complete =
      !workload.kind.empty() && is_name(workload.group) && is_name(workload.kind) &&
      !workload.path.empty() && workload.path.size() <= kMaxPathParts &&
      std::ranges::none_of(workload.path, [](const std::string& part) { return part.empty(); });
  if (!complete) {
    return fail(
        ErrorCode::kInvalidArgument,
        "expected GROUP/KIND:/PATH/OF/TEMPLATE, such as kubeflow.org/Notebook:/spec/template, "
        "got '{}'",
        printable(text));
  }
  return workload;
}

}  // namespace ceems::admission
