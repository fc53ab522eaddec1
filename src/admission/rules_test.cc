#include "admission/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::admission {
namespace {

using ::testing::HasSubstr;

const std::string kAccount = "system:serviceaccount:ns:robot";
const std::string kReplicaSets = "system:serviceaccount:kube-system:replicaset-controller";

Annotations mark(const std::string& by, const std::string& uid) {
  return {{std::string(kCreatedBy), by}, {std::string(kCreatedByUid), uid}};
}

Review review_by(const std::string& name,
                 const std::string& uid = "1",
                 std::vector<std::string> groups = {}) {
  Review review;
  review.operation = Operation::kCreate;
  review.caller = {.name = name, .uid = uid, .groups = std::move(groups)};
  return review;
}

Object pod(Annotations annotations = {}) {
  Object object{.kind = Kind::kPod, .top = {}};
  object.top = {.path = "/metadata/annotations", .annotations = std::move(annotations)};
  return object;
}

Object deployment(Annotations top = {}, Annotations in_template = {}) {
  Object object{.kind = Kind::kWorkload, .top = {}};
  object.top = {.path = "/metadata/annotations", .annotations = std::move(top)};
  object.templates = {
      {.path = "/spec/template/metadata/annotations", .annotations = std::move(in_template)}};
  return object;
}

/// The object after an UPDATE that has changed what differs from `old`.
Object updated(Object object, const Object& old) {
  object.has_old = true;
  object.top.old = old.top.annotations;
  for (std::size_t i = 0; i < object.templates.size(); ++i) {
    object.templates[i].old = old.templates[i].annotations;
  }
  return object;
}

/// "path created-by created-by-uid" of each operation.
std::string patch(const Object& object, const Review& review, const Rules& rules = {}) {
  std::string all;
  for (const PatchOperation& operation : mutate(rules, review, object).patch) {
    const auto text = [&](std::string_view name) {
      const auto found = operation.annotations.find(name);
      return found == operation.annotations.end() ? "-" : found->second;
    };
    all += (all.empty() ? "" : "; ") + operation.path + " " + text(kCreatedBy) + " " +
           text(kCreatedByUid);
  }
  return all;
}

TEST(DefaultRules, OfPods) {
  EXPECT_EQ(patch(pod(), review_by("ann")), "/metadata/annotations ann 1");
  EXPECT_EQ(patch(pod(), review_by(kAccount)), "/metadata/annotations " + kAccount + " 1");
  EXPECT_EQ(patch(pod(mark(kAccount, "9")), review_by("ann")), "/metadata/annotations ann 1");
  EXPECT_EQ(patch(pod(mark(kAccount, "9")), review_by(kAccount)), "");
  EXPECT_EQ(patch(pod(mark("bob", "2")), review_by("ann")), "");
  EXPECT_EQ(patch(pod(mark("", "")), review_by("ann")), "");
}

TEST(DefaultRules, OfWorkloads) {
  const std::string path = "/spec/template/metadata/annotations ";
  EXPECT_EQ(patch(deployment(), review_by("ann")), path + "ann 1");
  EXPECT_EQ(patch(deployment(), review_by(kAccount)), path + kAccount + " 1");
  EXPECT_EQ(patch(deployment(mark("bob", "2")), review_by("ann")), path + "bob 2");
  EXPECT_EQ(patch(deployment({{std::string(kCreatedBy), "bob"}}), review_by("ann")), path + "bob ");
  EXPECT_EQ(patch(deployment(mark("bob", "2"), mark("eve", "3")), review_by("ann")),
            path + "bob 2");
  EXPECT_EQ(patch(deployment(mark(kAccount, "9"), mark("eve", "3")), review_by("ann")), "");
  EXPECT_EQ(patch(deployment(mark(kAccount, "9"), mark(kAccount, "9")), review_by("ann")),
            path + "ann 1");
  EXPECT_EQ(patch(deployment(mark("", "")), review_by("ann")), path + "ann 1");
}

TEST(DefaultRules, KeepOtherAnnotations) {
  Object object = pod(mark(kAccount, "9"));
  for (int i = 0; i < 10; ++i) {
    object.top.annotations["example.org/" + std::to_string(i)] = "v";
  }
  const auto verdict = mutate({}, review_by("ann"), object);
  ASSERT_EQ(verdict.patch.size(), 1U);
  EXPECT_EQ(verdict.patch[0].annotations.size(), 12U);
  EXPECT_EQ(verdict.patch[0].annotations.at("example.org/7"), "v");
}

TEST(DefaultRules, AnUpdateNeverChangesATemplateThatTheRequestLeavesAlone) {
  Object unmarked = updated(deployment(), deployment());
  unmarked.templates[0].changed = false;
  EXPECT_EQ(patch(unmarked, review_by("ann")), "");
  Object top = updated(deployment(mark("bob", "2")), deployment());
  top.templates[0].changed = false;
  EXPECT_EQ(patch(top, review_by("ann")), "");
}

TEST(DefaultRules, AnUpdateThatLosesTheMarkGetsItBack) {
  EXPECT_EQ(patch(updated(deployment(), deployment({}, mark("bob", "2"))), review_by("ann")),
            "/spec/template/metadata/annotations bob 2");
  EXPECT_EQ(patch(updated(pod(), pod(mark("bob", "2"))), review_by("ann")),
            "/metadata/annotations bob 2");
  EXPECT_EQ(patch(updated(deployment(), deployment({}, mark(kAccount, "9"))), review_by("ann")),
            "/spec/template/metadata/annotations ann 1");
}

TEST(CustomWorkloads, LeaveWhatAnotherObjectControlsAlone) {
  Object set = deployment();
  set.builtin = false;
  set.templates[0].has_parent = false;
  const auto verdict = mutate({}, review_by("ann"), set);
  ASSERT_EQ(verdict.patch.size(), 1U);
  EXPECT_EQ(verdict.patch[0].path, "/spec/template/metadata");
  EXPECT_TRUE(verdict.patch[0].wrapped);
  set.controlled = true;
  EXPECT_EQ(patch(set, review_by(kReplicaSets)), "");
  EXPECT_EQ(mutate({}, review_by("ann"), set).patch.size(), 1U);  // she may have written that
  set.templates[0].annotations = mark("bob", "2");
  const Rules rules{.trusted = {"system:serviceaccount:kubeflow:*"}, .enforce = true};
  EXPECT_EQ(mutate(rules, review_by("ann"), set).patch.size(), 1U);
  EXPECT_FALSE(validate(rules, review_by("ann"), set).verdict.allowed);
  EXPECT_EQ(patch(set, review_by("system:serviceaccount:kubeflow:controller"), rules), "");
}

TEST(Trust, IsOfControllersAndOfThoseInTheList) {
  const Rules rules{.distrust = true, .trusted = {"system:serviceaccount:hub:*", "operators"}};
  const auto trusted = [&](const std::string& name, std::vector<std::string> groups = {}) {
    return is_trusted(rules, {.name = name, .uid = "", .groups = std::move(groups)});
  };
  EXPECT_TRUE(trusted(kReplicaSets));
  EXPECT_TRUE(trusted("system:kube-controller-manager"));
  EXPECT_TRUE(trusted("system:serviceaccount:hub:hub"));
  EXPECT_TRUE(trusted("ann", {"users", "operators"}));
  EXPECT_FALSE(trusted("ann"));
  EXPECT_FALSE(trusted(kAccount));
  EXPECT_FALSE(trusted("system:serviceaccount:kube-system:robot"));
  EXPECT_FALSE(trusted("system:serviceaccount:ns:replicaset-controller"));
  EXPECT_FALSE(trusted("operators-of-others"));
}

TEST(Distrust, ReplacesForgedCreators) {
  const Rules rules{.distrust = true, .trusted = {"system:serviceaccount:hub:hub"}};
  EXPECT_EQ(patch(pod(mark("bob", "2")), review_by("ann"), rules), "/metadata/annotations ann 1");
  EXPECT_EQ(patch(pod(mark("ann", "2")), review_by("ann"), rules), "/metadata/annotations ann 1");
  EXPECT_EQ(patch(pod(mark("ann", "1")), review_by("ann"), rules), "");
  EXPECT_EQ(patch(pod(mark("bob", "2")), review_by("system:serviceaccount:hub:hub"), rules), "");
  EXPECT_EQ(patch(pod(mark("bob", "2")), review_by(kReplicaSets), rules), "");
  EXPECT_EQ(patch(deployment(mark("bob", "2"), mark("bob", "2")), review_by("ann"), rules),
            "/metadata/annotations - -; /spec/template/metadata/annotations ann 1");
}

TEST(Distrust, CleansWhatTheJobsOfACronJobGetAsTheirOwnMetadata) {
  const Rules rules{.distrust = true};
  const auto cron_job = [](Annotations made) {
    Object object = deployment({}, mark("ann", "1"));
    object.made = {
        {.path = "/spec/jobTemplate/metadata/annotations", .annotations = std::move(made)}};
    return object;
  };
  EXPECT_EQ(patch(cron_job(mark("bob", "2")), review_by("ann"), rules),
            "/spec/jobTemplate/metadata/annotations - -");
  EXPECT_EQ(patch(cron_job(mark("ann", "1")), review_by("ann"), rules), "");
  EXPECT_EQ(patch(cron_job(mark("bob", "2")), review_by("ann")), "") << "as in the reference";
  Object kept = updated(cron_job(mark("eve", "3")), cron_job(mark("bob", "2")));
  kept.made[0].old = mark("bob", "2");
  EXPECT_EQ(patch(kept, review_by("ann"), rules), "/spec/jobTemplate/metadata/annotations bob 2");

  const Rules enforce{.enforce = true};
  EXPECT_FALSE(validate(enforce, review_by("ann"), cron_job(mark("bob", "2"))).verdict.allowed);
  EXPECT_TRUE(validate(enforce, review_by("ann"), cron_job(mark("ann", "1"))).verdict.allowed);
  EXPECT_FALSE(validate(enforce, review_by("ann"), kept).verdict.allowed);
}

TEST(Distrust, KeepsTheCreatorOverUpdates) {
  const Rules rules{.distrust = true};
  EXPECT_EQ(patch(updated(pod(mark("ann", "1")), pod(mark("bob", "2"))), review_by("ann"), rules),
            "/metadata/annotations bob 2");
  EXPECT_EQ(patch(updated(pod(), pod()), review_by("ann"), rules), "");
  EXPECT_EQ(patch(updated(deployment({}, mark("ann", "1")), deployment({}, mark("bob", "2"))),
                  review_by("ann"), rules),
            "/spec/template/metadata/annotations bob 2");
  EXPECT_EQ(patch(updated(deployment({}, mark(kAccount, "9")), deployment({}, mark(kAccount, "9"))),
                  review_by("ann"), rules),
            "/spec/template/metadata/annotations ann 1");
  EXPECT_EQ(patch(updated(deployment(mark("eve", "3"), mark("bob", "2")),
                          deployment(mark("bob", "2"), mark("bob", "2"))),
                  review_by("ann"), rules),
            "/metadata/annotations bob 2");
}

TEST(Validation, OnlyWarnsByDefault) {
  const auto bare = validate({}, review_by("ann"), pod());
  EXPECT_TRUE(bare.verdict.allowed);
  EXPECT_TRUE(bare.would_patch);
  EXPECT_TRUE(bare.verdict.patch.empty());
  EXPECT_FALSE(validate({}, review_by("ann"), pod(mark("bob", "2"))).would_patch);
  EXPECT_TRUE(
      validate({.distrust = true}, review_by("ann"), pod(mark("bob", "2"))).verdict.allowed);
}

TEST(Validation, RefusesForgedCreatorsOnRequest) {
  const Rules rules{.enforce = true};
  const auto allows = [&](const Object& object, const std::string& caller) {
    const auto validation = validate(rules, review_by(caller), object);
    EXPECT_EQ(validation.verdict.allowed, validation.verdict.message.empty());
    return validation.verdict.allowed;
  };
  EXPECT_FALSE(allows(pod(mark("bob", "2")), "ann"));
  EXPECT_TRUE(allows(pod(mark("bob", "2")), kReplicaSets));
  EXPECT_TRUE(allows(pod(mark("ann", "1")), "ann"));
  EXPECT_TRUE(allows(pod(), "ann"));
  EXPECT_FALSE(allows(deployment(mark("bob", "2")), "ann"));
  EXPECT_FALSE(allows(deployment({}, mark("bob", "2")), "ann"));
  EXPECT_FALSE(allows(updated(pod(), pod(mark("bob", "2"))), "ann"));
  EXPECT_FALSE(allows(updated(pod(mark("ann", "1")), pod(mark("bob", "2"))), "ann"));
  EXPECT_TRUE(allows(updated(pod(mark("bob", "2")), pod(mark("bob", "2"))), "ann"));
  EXPECT_FALSE(
      allows(updated(deployment({}, mark("ann", "1")), deployment({}, mark("bob", "2"))), "ann"));
  EXPECT_TRUE(allows(updated(deployment({}, mark("ann", "1")), deployment({}, mark(kAccount, "2"))),
                     "ann"));
  EXPECT_THAT(validate(rules, review_by("ann"), pod(mark("b\n", "2"))).verdict.message,
              HasSubstr("ann may not set the annotation ceems.io/created-by to b\\x0a"));
}

}  // namespace
}  // namespace ceems::admission
