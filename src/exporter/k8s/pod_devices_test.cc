#include "exporter/k8s/pod_devices.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"

namespace ceems::exporter::k8s {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Names = std::vector<std::string>;

TEST(JoinPods, PrefersNamespaceAndNameToTheNameAlone) {
  const auto claims = join_pods({{"pod", "ns1", {"A"}}, {"pod", "ns2", {"B"}}, {"x", "ns9", {"C"}}},
                                {{"ns2", "pod", "u2"}, {"ns1", "pod", "u1"}, {"ns3", "x", "u3"}});
  ASSERT_EQ(claims.size(), 3U);
  EXPECT_EQ(claims[0].uuid, "u1");
  EXPECT_THAT(claims[0].device_ids, ElementsAre("a"));
  EXPECT_EQ(claims[1].uuid, "u2");
  EXPECT_THAT(claims[1].device_ids, ElementsAre("b"));
  EXPECT_EQ(claims[2].uuid, "u3");  // another namespace, but the only pod of that name
  EXPECT_THAT(claims[2].device_ids, ElementsAre("c"));
  EXPECT_EQ(claims[0].evidence, gpu::Evidence::kManager);
}

TEST(JoinPods, UsesTheLastOfSeveralPods) {
  const auto claims =
      join_pods({{"pod", "other", {"a"}}}, {{"n1", "pod", "1"}, {"n2", "pod", "2"}});
  ASSERT_EQ(claims.size(), 1U);
  EXPECT_EQ(claims[0].uuid, "2");
}

TEST(JoinPods, CountsReplicasOfASharedDevice) {
  const auto claims =
      join_pods({{"p", "n", {"MIG-Ab::0", "MIG-Ab::1", "0000:C5:00.0", "::7"}}}, {{"n", "p", "u"}});
  ASSERT_EQ(claims.size(), 1U);
  EXPECT_THAT(claims[0].device_ids, ElementsAre("mig-ab", "mig-ab", "0000:c5:00.0", ""));
}

TEST(JoinPods, LeavesOutEntriesWithoutPodOrValidUid) {
  EXPECT_THAT(join_pods({{"p", "n", {"a"}}}, {{"n", "q", "u"}}), IsEmpty());
  EXPECT_THAT(join_pods({{"p", "n", {}}}, {{"n", "p", "u"}}), IsEmpty());
  EXPECT_THAT(join_pods({{"p", "n", {"a"}}}, {{"n", "p", "u\"}"}}), IsEmpty());
}

/// The answers of a kubelet and an API server, and how often they were called.
class Fake {
 public:
  Result<std::vector<gpu::Claim>> operator()() {
    ++fetches;
    const MutexLock lock(mutex_);
    if (!error_.empty()) {
      return fail(ErrorCode::kUnavailable, "{}", error_);
    }
    std::vector<gpu::Claim> claims;
    for (const std::string& name : names_) {
      claims.push_back({.uuid = name, .cgrouphostname = "", .device_ids = {"d-" + name}});
    }
    return claims;
  }
  void say(Names names, std::string error = "") {
    const MutexLock lock(mutex_);
    names_ = std::move(names);
    error_ = std::move(error);
  }
  std::atomic<int> fetches = 0;

 private:
  Mutex mutex_;
  Names names_ CEEMS_GUARDED_BY(mutex_);
  std::string error_ CEEMS_GUARDED_BY(mutex_);
};

class DevicesOfPods : public ::testing::Test {
 protected:
  PodClaims& claims() {
    if (!claims_) {
      PodClaimOptions options;
      options.fetch = [this](const std::stop_token&) { return fake_(); };
      options.times.patience = testing::kPatience;
      options.times.first_wait = testing::kPatience;
      options.times.period = milliseconds(2);
      claims_ = std::make_unique<PodClaims>(std::move(options), clock_);
      claims_->start();
      claims_->wait_first(std::chrono::steady_clock::now() + testing::kPatience);
    }
    return *claims_;
  }
  static UnitSnapshot snapshot(const Names& names) {
    UnitSnapshot result;
    for (const std::string& name : names) {
      Unit unit;
      unit.uuid = name;
      result.units.push_back(unit);
    }
    return result;
  }
  Names ask(const Names& pods) {
    const auto found = claims().claims(snapshot(pods));
    if (!found) {
      return {found.error().message};
    }
    Names names;
    for (const gpu::Claim& claim : *found) {
      names.push_back(claim.uuid);
    }
    return names;
  }
  /// Repeats the request until the answer is this one.
  bool comes(const Names& pods, const Names& expected) {
    return testing::eventually([&] { return ask(pods) == expected; });
  }

  testing::FakeClock clock_;
  Fake fake_;
  std::unique_ptr<PodClaims> claims_;  // the last member: its thread uses the others
};

TEST_F(DevicesOfPods, AreKnownAtTheFirstScrape) {
  fake_.say({"a"});
  EXPECT_THAT(ask({"a", "b"}), ElementsAre("a"));
}

TEST_F(DevicesOfPods, AreFetchedOnlyWhenPodsChange) {
  fake_.say({"a"});
  EXPECT_THAT(ask({"a"}), ElementsAre("a"));
  fake_.say({"a", "b"});
  const int before = fake_.fetches;
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(ask({"a"}), ElementsAre("a"));
  }
  EXPECT_EQ(fake_.fetches, before);
  EXPECT_TRUE(comes({"b", "a"}, {"a", "b"}));
  EXPECT_TRUE(comes({"a", "b"}, {"a", "b"}));  // the order does not matter
  EXPECT_EQ(fake_.fetches, before + 1);
}

TEST_F(DevicesOfPods, AreFetchedEveryQuarterOfAnHour) {
  fake_.say({"a"});
  EXPECT_THAT(ask({"a"}), ElementsAre("a"));
  const int before = fake_.fetches;
  clock_.advance(minutes(15));
  EXPECT_TRUE(comes({"a"}, {"a"}));
  EXPECT_TRUE(testing::eventually([&] { return fake_.fetches != before; }));
  ask({"a"});
  EXPECT_EQ(fake_.fetches, before + 1);
  clock_.advance(minutes(14));  // still recent after the success, so not fetched at each scrape
  ask({"a"});
  ask({"a"});
  EXPECT_EQ(fake_.fetches, before + 1);
}

TEST_F(DevicesOfPods, AreUnknownBeforeTheFirstAnswer) {
  fake_.say({}, "kubelet is away");
  EXPECT_THAT(ask({"a"}), ElementsAre(HasSubstr("kubelet is away")));
  const int before = fake_.fetches;
  fake_.say({"a"});
  ask({"a"});
  EXPECT_EQ(fake_.fetches, before) << "the same pods are fetched again only after a pause";
  clock_.advance(std::chrono::seconds(6));
  EXPECT_TRUE(comes({"a"}, {"a"}));
}

TEST_F(DevicesOfPods, AreKeptForRemainingPodsWithoutAnAnswer) {
  fake_.say({"a", "b"});
  EXPECT_THAT(ask({"a", "b"}), ElementsAre("a", "b"));
  fake_.say({}, "kubelet is away");
  EXPECT_TRUE(comes({"b", "c"}, {"b"}));
}

TEST_F(DevicesOfPods, AreNotFetchedWithoutPods) {
  EXPECT_THAT(ask({}), IsEmpty());
  EXPECT_EQ(fake_.fetches, 1);
}

}  // namespace
}  // namespace ceems::exporter::k8s
