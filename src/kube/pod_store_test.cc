#include "kube/pod_store.h"

#include <algorithm>
#include <optional>

#include <gtest/gtest.h>

namespace ceems::kube {
namespace {

Pod pod(const std::string& uid, const std::string& phase = "Running") {
  Pod made{.uid = uid, .name = "same", .name_space = "n"};
  made.created_ms = 1'000;
  made.start_ms = 2'000;
  made.phase = phase;
  return made;
}

WatchEvent event(WatchEvent::Type type, Pod changed) {
  return {.type = type, .pod = std::move(changed)};
}

std::optional<StoredPod> find(const PodStore& store, const std::string& uid) {
  for (const auto& stored : store.pods()) {
    if (stored->pod.uid == uid) {
      return *stored;
    }
  }
  return std::nullopt;
}

TEST(PodEnd, IsThatOfTheLastContainer) {
  StoredPod stored{.pod = pod("u", "Succeeded")};
  stored.pod.finished_ms = 5'000;
  stored.pod.unready_ms = 6'000;
  stored.pod.deletion_ms = 9'000;
  stored.finished_seen_ms = 7'000;
  stored.gone_ms = 8'000;
  EXPECT_EQ(stored.end_ms(), 5'000);
  stored.pod.finished_ms = 0;
  EXPECT_EQ(stored.end_ms(), 9'000);
  stored.pod.deletion_ms = 0;
  EXPECT_EQ(stored.end_ms(), 6'000);
  stored.pod.unready_ms = 0;
  EXPECT_EQ(stored.end_ms(), 7'000);
  stored.finished_seen_ms = 0;
  EXPECT_EQ(stored.end_ms(), 8'000);
  stored.gone_ms = 0;
  EXPECT_EQ(stored.end_ms(), 2'000) << "nothing is known, so no time is charged";
}

TEST(PodEnd, IsTheDeletionOfAPodThatRan) {
  StoredPod stored{.pod = pod("u")};
  stored.pod.deletion_ms = 40'000;
  EXPECT_EQ(stored.end_ms(), 0) << "still in its grace period";
  stored.gone_ms = 11'000;
  EXPECT_EQ(stored.end_ms(), 11'000);
  stored.gone_ms = 90'000;  // we noticed it late
  EXPECT_EQ(stored.end_ms(), 40'000);
  stored.pod.finished_ms = 10'000;
  EXPECT_EQ(stored.end_ms(), 10'000);
  stored.pod.finished_ms = 1;  // the clock of the node is wrong
  EXPECT_EQ(stored.end_ms(), 2'000);
}

TEST(PodStore, FollowsEvents) {
  PodStore store;
  store.replace({pod("a"), pod("b")}, 10'000);
  store.apply(event(WatchEvent::Type::kAdded, pod("c", "Pending")), 11'000);
  store.apply(event(WatchEvent::Type::kModified, pod("c")), 12'000);
  store.apply(event(WatchEvent::Type::kModified, pod("a", "Succeeded")), 13'000);
  store.apply(event(WatchEvent::Type::kModified, pod("a", "Succeeded")), 14'000);
  store.apply(event(WatchEvent::Type::kDeleted, pod("b")), 15'000);
  store.apply(event(WatchEvent::Type::kDeleted, pod("never seen")), 16'000);
  store.apply({.type = WatchEvent::Type::kBookmark}, 17'000);
  ASSERT_EQ(store.size(), 4U);
  EXPECT_EQ(find(store, "c")->pod.phase, "Running");
  EXPECT_EQ(find(store, "a")->finished_seen_ms, 13'000);
  EXPECT_EQ(find(store, "b")->gone_ms, 15'000);
  EXPECT_EQ(find(store, "never seen")->gone_ms, 16'000);
}

TEST(PodStore, TreatsPodsMissingFromAListAsDeleted) {
  PodStore store;
  store.replace({pod("a"), pod("b")}, 10'000);
  store.apply(event(WatchEvent::Type::kDeleted, pod("c")), 12'000);
  store.replace({pod("a"), pod("d")}, 15'000);
  ASSERT_EQ(store.size(), 4U);
  EXPECT_EQ(find(store, "a")->gone_ms, 0);
  EXPECT_EQ(find(store, "b")->gone_ms, 15'000);
  EXPECT_EQ(find(store, "c")->gone_ms, 12'000);
}

TEST(PodStore, ForgetsOnlyDeletedPods) {
  PodStore store;
  store.replace({pod("a"), pod("b")}, 10'000);
  store.apply(event(WatchEvent::Type::kDeleted, pod("b")), 12'000);
  store.forget({"a", "b", "unknown"});
  EXPECT_EQ(store.size(), 1U);
  EXPECT_TRUE(find(store, "a"));
}

}  // namespace
}  // namespace ceems::kube
