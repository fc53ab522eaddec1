#include "exporter/k8s/pod_devices.h"

#include <algorithm>
#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "net/server/server.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

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

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PodPage, HasNamesAndUids) {
  const auto page = parse_pod_page(R"({"kind": "PodList", "metadata": {"resourceVersion": "7"},
      "items": [
        {"metadata": {"name": "a", "namespace": "n", "uid": "u-1", "labels": {"x": "y"}},
         "spec": {"containers": [{"name": "c"}]}},
        {"metadata": {"name": "b", "namespace": "n", "uid": "u-2"}}]})");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->pods.size(), 2U);
  EXPECT_EQ(page->pods[0].name, "a");
  EXPECT_EQ(page->pods[0].name_space, "n");
  EXPECT_EQ(page->pods[0].uid, "u-1");
  EXPECT_EQ(page->pods[1].uid, "u-2");
  EXPECT_EQ(page->next, "");
}

TEST(PodPage, LeavesOutItemsThatAreNotPods) {
  const auto page = parse_pod_page(
      R"({"items": [null, 1, {}, {"metadata": 3}, {"metadata": {"name": 1, "uid": "u"}},
          {"metadata": {"name": "a"}}, {"metadata": {"uid": "u"}},
          {"metadata": {"name": "good", "uid": "u"}}], "metadata": {"continue": "t"}})");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->pods.size(), 1U);
  EXPECT_EQ(page->pods[0].name, "good");
  EXPECT_EQ(page->next, "t");
}

TEST(PodPage, TreatsNullAsNoPods) {
  EXPECT_TRUE(parse_pod_page(R"({"items": null})")->pods.empty());
}

TEST(PodPage, RefusesOtherTexts) {
  for (const std::string& text :
       {std::string(), std::string("<html>"), std::string("[]"), std::string("{}"),
        std::string(R"({"items": {}})"), std::string(R"({"items": [)"),
        std::string(R"({"items": []} more)"), std::string(100'000, '[')}) {
    const auto page = parse_pod_page(text);
    ASSERT_FALSE(page) << text.substr(0, 20);
    EXPECT_EQ(page.error().code, ErrorCode::kParse);
  }
}

class ApiServer : public ::testing::Test {
 protected:
  void serve(std::vector<std::string> bodies, int status = 200) {
    net::ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    server_ = *net::Server::create(
        std::move(options), [this, bodies = std::move(bodies), status](const net::Request& request,
                                                                       net::Response& response) {
          const MutexLock lock(mutex_);
          response.status = status;
          response.body = bodies.at(std::min(requests_.size(), bodies.size() - 1));
          requests_.push_back(request);
        });
    server_->start();
    access_.server = "http://" + server_->addresses()[0] + "/prefix";
  }
  [[nodiscard]] Result<std::vector<Pod>> list(const std::string& node) const {
    return list_pods(access_, node, milliseconds(3000), {});
  }
  [[nodiscard]] net::Request request(std::size_t number) const {
    const MutexLock lock(mutex_);
    return requests_.at(number);
  }
  [[nodiscard]] std::string header(std::size_t number, std::string_view name) const {
    const net::Request sent = request(number);
    const std::string* value = net::find_header(sent.headers, name);
    return value == nullptr ? "" : *value;
  }

  mutable Mutex mutex_;
  std::vector<net::Request> requests_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<net::Server> server_;
  kube::ApiAccess access_;
};

constexpr const char* kOnePod = R"({"items": [{"metadata": {"name": "a", "uid": "u"}}]})";

TEST_F(ApiServer, ListsThePodsOfTheNode) {
  serve({kOnePod});
  access_.token = "t0ken";
  const auto pods = list("node 1&x");
  ASSERT_TRUE(pods) << pods.error().message;
  EXPECT_EQ(pods->size(), 1U);
  EXPECT_EQ(request(0).target, "/prefix/api/v1/pods?fieldSelector=spec.nodeName%3Dnode%201%26x");
  EXPECT_EQ(header(0, "Authorization"), "Bearer t0ken");
  EXPECT_THAT(header(0, "Accept"), HasSubstr("as=PartialObjectMetadataList"));
}

TEST_F(ApiServer, ListsThePodsOfAClusterInPages) {
  serve({R"({"metadata": {"continue": "a+b"}, "items": [{"metadata": {"name": "a", "uid": "1"}}]})",
         R"({"items": [{"metadata": {"name": "b", "uid": "2"}}]})"});
  access_.username = "me";
  access_.password = "secret";
  const auto pods = list("");
  ASSERT_TRUE(pods) << pods.error().message;
  ASSERT_EQ(pods->size(), 2U);
  EXPECT_EQ((*pods)[1].uid, "2");
  EXPECT_EQ(request(0).target, "/prefix/api/v1/pods?limit=500");
  EXPECT_EQ(request(1).target, "/prefix/api/v1/pods?limit=500&continue=a%2Bb");
  EXPECT_EQ(header(1, "Authorization"), "Basic bWU6c2VjcmV0");
}

TEST_F(ApiServer, ReceivesTheCurrentTokenOfTheFile) {
  const testing::TempDir root;
  serve({kOnePod});
  access_.token = "old";
  access_.token_file = root.write("token", "first\n");
  ASSERT_TRUE(list("n"));
  root.write("token", "second\n");
  ASSERT_TRUE(list("n"));
  EXPECT_EQ(header(0, "Authorization"), "Bearer first");
  EXPECT_EQ(header(1, "Authorization"), "Bearer second");
}

TEST_F(ApiServer, MayRefuse) {
  serve({"no"}, 403);
  access_.token = "t0ken";
  const auto pods = list("n");
  ASSERT_FALSE(pods);
  EXPECT_THAT(pods.error().message, HasSubstr("HTTP status 403"));
  EXPECT_THAT(pods.error().message, Not(HasSubstr("t0ken")));
}

TEST_F(ApiServer, MaySendInvalidData) {
  serve({"{\"items\": 5}"});
  const auto pods = list("n");
  ASSERT_FALSE(pods);
  EXPECT_EQ(pods.error().code, ErrorCode::kParse);
}

TEST_F(ApiServer, NeedsItsFiles) {
  serve({kOnePod});
  access_.token_file = "/does/not/exist";
  const auto pods = list("n");
  ASSERT_FALSE(pods);
  EXPECT_THAT(pods.error().message, HasSubstr("API server of Kubernetes: open /does/not/exist"));
  access_.token_file.clear();
  access_.ca = "no certificate";
  access_.server = "https://127.0.0.1:1";
  EXPECT_FALSE(list("n"));
}

}  // namespace

}  // namespace ceems::exporter::k8s
