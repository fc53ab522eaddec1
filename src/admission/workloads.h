#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::admission {

/// Where a kind of objects keeps templates of pods.
struct Workload {
  std::string group;  ///< "" for the core group
  std::string kind;
  /// The members that lead to the template, e.g. {"spec", "template"}. "*" stands for every member
  /// of an object or every element of a list.
  std::vector<std::string> path;
  /// One of the kinds of the reference, whose templates always have metadata.
  bool builtin = false;
  /// The members that lead to what the workloads made of this one get as their own metadata: their
  /// marks count as if their creator had written them. Empty if it makes pods itself.
  std::vector<std::string> made = {};
};

/// Deployment, StatefulSet, DaemonSet, Job and CronJob, which follow the rules of the reference;
/// ReplicaSet and ReplicationController, which a user can make without a Deployment; and
/// ControllerRevision, which has an earlier template of a StatefulSet or DaemonSet.
std::vector<Workload> builtin_workloads();

/// Parses a value of --workload: "kubeflow.org/Notebook:/spec/template",
/// "/ReplicationController:/spec/template". kInvalidArgument says what was expected.
Result<Workload> parse_workload(std::string_view text);

}  // namespace ceems::admission
