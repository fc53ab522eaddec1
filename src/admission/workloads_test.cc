#include "admission/workloads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::admission {
namespace {

using ::testing::ElementsAre;

TEST(Workloads, AreNamedByGroupKindAndPath) {
  const auto notebook = parse_workload("kubeflow.org/Notebook:/spec/template");
  ASSERT_TRUE(notebook);
  EXPECT_EQ(notebook->group, "kubeflow.org");
  EXPECT_EQ(notebook->kind, "Notebook");
  EXPECT_THAT(notebook->path, ElementsAre("spec", "template"));
  EXPECT_FALSE(notebook->builtin);
  const auto core = parse_workload("/ReplicationController:/spec/template");
  ASSERT_TRUE(core);
  EXPECT_EQ(core->group, "");
  EXPECT_EQ(parse_workload("ray.io/RayCluster:/spec/workerGroupSpecs/*/template")->path[2], "*");
}

TEST(Workloads, AreReviewedWithoutAFlagWhereKubernetesMakesPodsOfThem) {
  std::string kinds;
  for (const Workload& workload : builtin_workloads()) {
    kinds += workload.group + "/" + workload.kind + " ";
  }
  EXPECT_EQ(kinds,
            "apps/Deployment apps/StatefulSet apps/DaemonSet batch/Job batch/CronJob "
            "apps/ReplicaSet /ReplicationController apps/ControllerRevision ");
}

TEST(Workloads, RefuseOtherTexts) {
  for (const std::string_view text :
       {"", "Notebook", "kubeflow.org/Notebook", "kubeflow.org/Notebook:", "a/B:spec/template",
        "a/B:/", "a/B:/spec//template", "a/:/spec", "a/b/C:/spec", "a b/C:/spec",
        "a/B:/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17"}) {
    const auto workload = parse_workload(text);
    ASSERT_FALSE(workload) << text;
    EXPECT_EQ(workload.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace ceems::admission
