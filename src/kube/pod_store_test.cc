#include "kube/pod_store.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

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

/// A pod that claims to be the mirror of the static pod "h".
Pod mirror(const std::string& uid, std::int64_t created_ms) {
  Pod made = pod("h");
  made.mirror_uid = uid;
  made.created_ms = created_ms;
  return made;
}

/// "UID NAME" of the pods that have not been deleted, by UID; the name is that of the object.
std::string living(const PodStore& store) {
  std::map<std::string, std::string> texts;
  for (const auto& stored : store.pods()) {
    if (stored->gone_ms == 0) {
      texts[stored->pod.uid] = stored->pod.mirror_uid;
    }
  }
  std::string text;
  for (const auto& [uid, object] : texts) {
    text.append(uid).append(object.empty() ? "" : "=").append(object).append(" ");
  }
  return text;
}

TEST(PodStore, KnowsTheFirstOfTheMirrorsOfAStaticPod) {
  PodStore store;
  store.replace({mirror("true", 1'000), mirror("forged", 2'000)}, 10'000);
  EXPECT_EQ(living(store), "forged h=true ");
  store.replace({mirror("forged", 2'000), mirror("true", 1'000)}, 11'000);
  EXPECT_EQ(living(store), "forged h=true ");
  store.apply(event(WatchEvent::Type::kModified, mirror("forged", 2'000)), 12'000);
  EXPECT_EQ(living(store), "forged h=true ");
  store.apply(event(WatchEvent::Type::kDeleted, mirror("forged", 2'000)), 13'000);
  EXPECT_EQ(living(store), "h=true ");
  EXPECT_EQ(find(store, "forged")->gone_ms, 13'000);

  PodStore other;
  other.apply(event(WatchEvent::Type::kAdded, mirror("forged", 2'000)), 11'000);
  EXPECT_EQ(living(other), "h=forged ");
  other.apply(event(WatchEvent::Type::kAdded, mirror("true", 1'000)), 12'000);
  EXPECT_EQ(living(other), "forged h=true ");
}

TEST(PodStore, FollowsAStaticPodToItsNextMirror) {
  PodStore store;
  store.replace({mirror("old", 1'000)}, 10'000);
  store.replace({mirror("new", 9'000)}, 11'000);
  EXPECT_EQ(living(store), "h=new ");
  store.apply(event(WatchEvent::Type::kDeleted, mirror("new", 9'000)), 12'000);
  EXPECT_EQ(living(store), "");
  store.apply(event(WatchEvent::Type::kAdded, mirror("newer", 12'000)), 13'000);
  EXPECT_EQ(living(store), "h=newer ");
  EXPECT_EQ(store.size(), 1U);
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
