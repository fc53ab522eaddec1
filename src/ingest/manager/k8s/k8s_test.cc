#include "ingest/manager/k8s/k8s.h"

#include <algorithm>
#include <map>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/durations.h"
#include "ingest/manager/k8s/access.h"
#include "ingest/manager/k8s/people.h"
#include "testing/fake_clock.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kNoon = 1'772'366'400'000;  // 2026-03-01T12:00:00Z
constexpr model::Window kPodWindow{.start_ms = kNoon, .end_ms = kNoon + 15 * kMinuteMs};

kube::Pod pod(const std::string& uid, std::int64_t start_ms, const std::string& phase = "Running") {
  kube::Pod made{.uid = uid, .name = "name of " + uid, .name_space = "lab"};
  made.created_ms = start_ms - 2'000;
  made.start_ms = start_ms;
  made.phase = phase;
  made.ready = phase == "Running" ? "Ready" : "";
  made.qos = "Burstable";
  made.annotations = {{"ceems.io/created-by", "ada"}};
  made.limits = {{"cpu", 2}, {"memory", 3.0 * (1 << 20)}, {"nvidia.com/gpu", 1}};
  return made;
}

kube::StoredPod stored(kube::Pod made) {
  return {.pod = std::move(made)};
}

model::Unit unit_of(const kube::StoredPod& made,
                    const K8sUnitOptions& options = {},
                    model::Window window = kPodWindow) {
  auto unit = k8s_unit(made, options, window, window.start_ms, TimeZone());
  EXPECT_TRUE(unit);
  return unit.value_or(model::Unit{});
}

TEST(K8sUnit, CountsFromItsStart) {
  // CEEMS 0.10.2 charges a pod that starts in the window for the time before its start.
  const auto unit = unit_of(stored(pod("u", kNoon + 5 * kMinuteMs)));
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 600);
  EXPECT_EQ(unit.total_time_seconds.at("alloc_cputime"), 1200);
  EXPECT_EQ(unit.total_time_seconds.at("alloc_cpumemtime"), 600.0 * 3 * (1 << 20));
  EXPECT_EQ(unit.total_time_seconds.at("alloc_gputime"), 600);
  EXPECT_EQ(unit.total_time_seconds.at("alloc_gpumemtime"), 600);
  EXPECT_EQ(unit.started_at, "2026-03-01T12:05:00+0000");
  EXPECT_EQ(unit.ended_at, "N/A");
  EXPECT_EQ(unit.ended_at_ts, 0);
  EXPECT_EQ(unit.elapsed, "00:10:02");
  EXPECT_EQ(unit.state, "Running/Ready");
  EXPECT_EQ(unit.uuid, "u");
  EXPECT_EQ(unit.name, "name of u");
  EXPECT_EQ(unit.project, "lab");
  EXPECT_EQ(unit.username, "ada");
  EXPECT_EQ(unit.tags, R"({"qos":"Burstable","annotations":{"ceems.io/created-by":"ada"}})");
}

TEST(K8sUnit, SaysThatItUsedTooMuchMemory) {
  kube::Pod killed = pod("u", kNoon + 5 * kMinuteMs, "Failed");
  killed.annotations.clear();
  EXPECT_EQ(unit_of(stored(killed)).tags, R"({"qos":"Burstable"})");
  killed.out_of_memory = true;
  EXPECT_EQ(unit_of(stored(killed)).tags, R"({"qos":"Burstable","exit_reason":"OOMKilled"})");
  killed.phase = "Running";  // another of its containers goes on
  EXPECT_EQ(unit_of(stored(killed)).tags, R"({"qos":"Burstable"})");
}

TEST(K8sUnit, CountsTheWholeWindowOfALongRun) {
  const auto unit = unit_of(stored(pod("u", kNoon - 600 * kMinuteMs)));
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 900);
}

TEST(K8sUnit, CanCountTheRequestsOfContainersWithoutALimit) {
  kube::Pod made = pod("u", kNoon);
  made.limits = {};
  made.reserved = {{"cpu", 2}, {"memory", 1024}};
  EXPECT_EQ(unit_of(stored(made)).allocation, R"({"vcpus":0.001,"mem":1})");
  K8sUnitOptions options;
  options.requests_without_limits = true;
  EXPECT_EQ(unit_of(stored(made), options).allocation, R"({"vcpus":2,"mem":1024})");
}

TEST(K8sUnit, CanCountMemoryAsOtherManagersDo) {
  K8sUnitOptions options;
  options.memory_time_in_mib = true;
  const auto unit = unit_of(stored(pod("u", kNoon)), options);
  EXPECT_EQ(unit.total_time_seconds.at("alloc_cpumemtime"), 2700);
}

TEST(K8sUnit, EndsWithItsContainers) {
  // CEEMS 0.10.2 counts a finished pod as running until it is deleted.
  auto finished = stored(pod("u", kNoon + 2 * kMinuteMs, "Succeeded"));
  finished.pod.finished_ms = kNoon + 12 * kMinuteMs;
  const auto unit = unit_of(finished);
  EXPECT_EQ(unit.ended_at_ts, kNoon + 12 * kMinuteMs);
  EXPECT_EQ(unit.ended_at, "2026-03-01T12:12:00+0000");
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 600);
  EXPECT_EQ(unit.elapsed, "00:10:02");
  EXPECT_EQ(unit.state, "Succeeded");
}

TEST(K8sUnit, IsReportedAsItStoodAtTheEndOfTheWindow) {
  auto finished = stored(pod("u", kNoon - kMinuteMs, "Failed"));
  finished.pod.finished_ms = kNoon + 20 * kMinuteMs;
  const auto unit = unit_of(finished);
  EXPECT_EQ(unit.state, "Running");
  EXPECT_EQ(unit.ended_at_ts, 0);
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 900);
  EXPECT_FALSE(k8s_unit(stored(pod("v", kNoon + 20 * kMinuteMs)), {}, kPodWindow, kNoon, {}));
}

TEST(K8sUnit, IsThereWhenItStartsAtTheEndOfTheWindowAndNotWhenLater) {
  const auto at_end = unit_of(stored(pod("u", kPodWindow.end_ms)));
  EXPECT_EQ(at_end.started_at_ts, kPodWindow.end_ms);
  EXPECT_EQ(at_end.total_time_seconds.at("walltime"), 0);
  EXPECT_FALSE(k8s_unit(stored(pod("u", kPodWindow.end_ms + 1)), {}, kPodWindow, kNoon, {}));
  auto created = pod("u", 0, "Pending");
  created.created_ms = kPodWindow.end_ms;
  EXPECT_TRUE(k8s_unit(stored(created), {}, kPodWindow, kNoon, {}));
  created.created_ms = kPodWindow.end_ms + 1;
  EXPECT_FALSE(k8s_unit(stored(created), {}, kPodWindow, kNoon, {}));
}

TEST(K8sUnit, HasEndedWhenItEndsAtTheEndOfTheWindowAndNotWhenLater) {
  auto finished = stored(pod("u", kNoon, "Succeeded"));
  for (const std::int64_t late : {-1, 0, 1}) {
    finished.pod.finished_ms = kPodWindow.end_ms + late;
    const auto unit = unit_of(finished);
    EXPECT_EQ(unit.ended_at_ts, late <= 0 ? kPodWindow.end_ms + late : 0) << late;
    EXPECT_EQ(unit.state, late <= 0 ? "Succeeded" : "Running") << late;
    EXPECT_EQ(unit.total_time_seconds.at("walltime"), late < 0 ? 899.999 : 900) << late;
  }
}

TEST(K8sUnit, CountsFromTheMillisecondThatWindowsBeforeHaveCountedTo) {
  const auto walltime = [](std::int64_t start_ms) {
    return unit_of(stored(pod("u", start_ms))).total_time_seconds.at("walltime");
  };
  EXPECT_EQ(walltime(kNoon - 1), 900);
  EXPECT_EQ(walltime(kNoon), 900);
  EXPECT_EQ(walltime(kNoon + 1), 899.999);
}

TEST(K8sUnit, AddsNothingAfterItsEnd) {
  auto finished = stored(pod("u", kNoon - 60 * kMinuteMs, "Succeeded"));
  finished.pod.deletion_ms = kNoon - 10 * kMinuteMs;
  const auto unit = unit_of(finished);
  EXPECT_EQ(unit.ended_at_ts, kNoon - 10 * kMinuteMs);
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 0);
}

TEST(K8sUnit, WaitsWithoutStartAndTime) {
  auto pending = pod("u", kNoon - 60 * kMinuteMs, "Pending");
  const auto unit = unit_of(stored(pending));
  EXPECT_EQ(unit.started_at, "N/A");
  EXPECT_EQ(unit.started_at_ts, 0);
  EXPECT_EQ(unit.elapsed, "N/A");
  EXPECT_EQ(unit.state, "Pending");
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 0);
  auto unstarted = pod("v", kNoon);
  unstarted.start_ms = 0;  // CEEMS 0.10.2 crashes on such a pod
  EXPECT_EQ(unit_of(stored(unstarted)).started_at, "N/A");
}

TEST(K8sUnit, WasDeletedWhileItRan) {
  auto gone = stored(pod("u", kNoon - kMinuteMs));
  gone.gone_ms = kNoon + 5 * kMinuteMs;
  const auto unit = unit_of(gone);
  EXPECT_EQ(unit.state, "Deleted");
  EXPECT_EQ(unit.ended_at_ts, kNoon + 5 * kMinuteMs);
  EXPECT_EQ(unit.total_time_seconds.at("walltime"), 300);
}

TEST(K8sUnit, SumsEachGpuResource) {
  // CEEMS 0.10.2 counts the GPUs of the last container only.
  auto made = pod("u", kNoon);
  made.limits = {{"nvidia.com/gpu", 2}, {"nvidia.com/mig-1g.5gb", 3}, {"amd.com/gpu", 7}};
  K8sUnitOptions options;
  options.gpu_resources = {"nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "x.y/none"};
  const auto unit = unit_of(stored(made), options);
  EXPECT_EQ(unit.allocation,
            R"({"vcpus":0.001,"mem":1,"nvidia.com/gpu":2,"nvidia.com/mig-1g.5gb":3})");
  EXPECT_EQ(unit.total_time_seconds.at("alloc_gputime"), 5 * 900);
}

TEST(K8sUnit, HasWhatWasRequestedBesideItsLimits) {
  auto made = pod("u", kNoon);
  made.requests = {{"cpu", 0.5}, {"memory", 1024}, {"nvidia.com/gpu", 1}};
  EXPECT_EQ(unit_of(stored(made)).allocation,
            R"({"vcpus":2,"mem":3145728,"nvidia.com/gpu":1,"req_cpus":0.5,"req_mem":1024})");
}

TEST(PodOwner, TakesAnnotationsInTheirOrder) {
  K8sUnitOptions options;
  options.username_annotations = {"first", "second"};
  options.project_annotations = {"p1", "p2"};
  kube::Pod made{.uid = "u", .name = "n", .name_space = "space"};
  EXPECT_EQ(owner_of(made, options).project, "space");
  EXPECT_EQ(owner_of(made, options).user, "space:svc");
  made.annotations = {{"second", "bob"}, {"p2", "theory"}};
  EXPECT_EQ(owner_of(made, options).project, "theory");
  EXPECT_EQ(owner_of(made, options).user, "bob");
  made.annotations["first"] = "ada";
  made.annotations["p1"] = "";
  EXPECT_EQ(owner_of(made, options).user, "ada");
  EXPECT_EQ(owner_of(made, options).project, "theory");
  made.annotations["first"] = "system:serviceaccount:x:y";
  EXPECT_EQ(owner_of(made, options).user, "theory:svc");
}

TEST(UsersFile, NamesUsersOfNamespaces) {
  const auto members =
      users_of_file(*config::parse_yaml("users:\n  n1: [ada, bob]\n  n2:\n  n3: [ada, '']\n", "f"));
  ASSERT_TRUE(members) << members.error().message;
  EXPECT_THAT(*members, ElementsAre(Membership("n1", "ada"), Membership("n1", "bob"),
                                    Membership("n3", "ada")));
  EXPECT_THAT(*users_of_file(*config::parse_yaml("users: {}", "f")), IsEmpty());
}

TEST(UsersFile, IsAnErrorWhenCutOff) {
  for (const char* text : {"", "users:", "users: [a]", "user: {a: [b]}", "users: {a: b}", "- 1"}) {
    const auto members = users_of_file(*config::parse_yaml(text, "f"));
    ASSERT_FALSE(members) << text;
    EXPECT_THAT(members.error().message, HasSubstr("f")) << text;
  }
}

/// Returns the pods that the test set.
class FakePods final : public kube::PodSource {
 public:
  Result<std::vector<std::shared_ptr<const kube::StoredPod>>> pods(
      milliseconds /*wait*/, const std::stop_token& /*stop*/) override {
    if (down) {
      return fail(ErrorCode::kUnavailable, "pods were not listed yet: refused");
    }
    std::vector<std::shared_ptr<const kube::StoredPod>> all;
    for (const auto& [uid, made] : known) {
      all.push_back(std::make_shared<kube::StoredPod>(made));
    }
    return all;
  }
  void forget(const std::vector<std::string>& uids) override {
    for (const auto& uid : uids) {
      known.erase(uid);
    }
  }

  std::map<std::string, kube::StoredPod> known;
  bool down = false;
};

class K8sManagerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pods = std::make_unique<FakePods>();
    pods_ = pods.get();
    K8sSources sources;
    sources.pods = std::move(pods);
    sources.role_bindings = [this](const std::stop_token&) { return bindings_; };
    sources.resource_claims = [this](const std::stop_token&) { return claims_; };
    sources.users_file = [this] { return users_file_; };
    sources.users_file_optional = optional_;
    manager_ = make_k8s("c", {}, std::move(sources), {}, clock_, milliseconds(10));
  }
  void put(kube::Pod made) { pods_->known[made.uid].pod = std::move(made); }
  /// Fetches the window from minute `from` to minute `to` after noon.
  Result<std::vector<model::Unit>> fetch(int from, int to) {
    return manager_->fetch_units(
        {.start_ms = kNoon + from * kMinuteMs, .end_ms = kNoon + to * kMinuteMs}, {});
  }
  /// The seconds that the window adds to each unit.
  std::map<std::string, double> seconds(int from, int to) {
    std::map<std::string, double> found;
    const auto units = fetch(from, to);
    EXPECT_TRUE(units);
    if (units) {
      for (const auto& unit : *units) {
        found[unit.uuid] += unit.total_time_seconds.at("walltime");
      }
    }
    return found;
  }
  /// Returns "project: user user ..." for each project.
  std::vector<std::string> people() {
    const auto result = manager_->fetch_users_projects(kPodWindow, {});
    if (!result) {
      return {result.error().message};
    }
    std::vector<std::string> lines;
    for (const auto& project : result->projects) {
      lines.push_back(project.name + ":");
      for (const auto& user : project.users) {
        lines.back() += " " + user;
      }
    }
    return lines;
  }

  testing::FakeClock clock_;
  FakePods* pods_ = nullptr;
  bool optional_ = false;
  Result<kube::RoleBindingList> bindings_ = kube::RoleBindingList{
      .users = {{.name_space = "lab", .user = "eve"}}, .bindings = 2, .next = {}};
  Result<std::vector<kube::ClaimedDevices>> claims_ = std::vector<kube::ClaimedDevices>{};
  Result<config::Node> users_file_ = config::parse_yaml("users: {lab: [bob]}", "f");
  std::unique_ptr<ResourceManager> manager_;
};

using Seconds = std::map<std::string, double>;

TEST_F(K8sManagerTest, CountsEachSecondOnce) {
  put(pod("old", kNoon - 60 * kMinuteMs));
  EXPECT_EQ(seconds(0, 15), (Seconds{{"old", 900}}));
  put(pod("new", kNoon + 20 * kMinuteMs));
  auto quick = pod("quick", kNoon + 16 * kMinuteMs, "Succeeded");
  quick.finished_ms = quick.start_ms + 7'000;
  put(quick);
  EXPECT_EQ(seconds(15, 30), (Seconds{{"old", 900}, {"new", 600}, {"quick", 7}}));
  EXPECT_EQ(seconds(30, 45), (Seconds{{"old", 900}, {"new", 900}}));
}

TEST_F(K8sManagerTest, ReportsAWindowAgainThatWasNotWritten) {
  auto gone = stored(pod("gone", kNoon + kMinuteMs));
  gone.gone_ms = kNoon + 3 * kMinuteMs;
  pods_->known["gone"] = gone;
  EXPECT_EQ(seconds(0, 15), (Seconds{{"gone", 120}}));
  EXPECT_EQ(seconds(0, 15), (Seconds{{"gone", 120}}));
  EXPECT_EQ(seconds(0, 30), (Seconds{{"gone", 120}}));
  EXPECT_EQ(pods_->known.size(), 1U) << "kept until its end is written";
  EXPECT_EQ(seconds(30, 45), Seconds{});
  EXPECT_EQ(pods_->known.size(), 0U);
}

TEST_F(K8sManagerTest, ForgetsAFinishedPodThatIsDeletedLater) {
  auto finished = pod("u", kNoon, "Succeeded");
  finished.finished_ms = kNoon + kMinuteMs;
  put(finished);
  EXPECT_EQ(seconds(0, 15), (Seconds{{"u", 60}}));
  EXPECT_EQ(seconds(15, 30), Seconds{});
  EXPECT_EQ(pods_->known.size(), 1U);
  pods_->known["u"].gone_ms = kNoon + 31 * kMinuteMs;
  EXPECT_EQ(seconds(30, 45), Seconds{});
  EXPECT_EQ(pods_->known.size(), 0U);
}

TEST_F(K8sManagerTest, ReportsAnEndAtTheEndOfAWindowOnce) {
  auto finished = pod("u", kNoon, "Succeeded");
  finished.finished_ms = kNoon + 15 * kMinuteMs;
  put(finished);
  EXPECT_EQ(seconds(0, 15), (Seconds{{"u", 900}}));
  EXPECT_EQ(seconds(15, 30), Seconds{});
}

TEST_F(K8sManagerTest, CountsAPodHeardOfLateFromItsStart) {
  EXPECT_EQ(seconds(0, 15), Seconds{});
  put(pod("late", kNoon + 14 * kMinuteMs));
  EXPECT_EQ(seconds(15, 30), (Seconds{{"late", 960}}));
}

TEST_F(K8sManagerTest, CountsAPodThatWaitedForItsImageFromItsStart) {
  put(pod("u", kNoon + 10 * kMinuteMs, "Pending"));
  EXPECT_EQ(seconds(0, 15), (Seconds{{"u", 0}}));
  put(pod("u", kNoon + 10 * kMinuteMs));
  EXPECT_EQ(seconds(15, 30), (Seconds{{"u", 1200}}));
  EXPECT_EQ(seconds(30, 45), (Seconds{{"u", 900}}));
}

TEST_F(K8sManagerTest, GivesTheSameSumWhateverTheWindows) {
  for (const std::vector<int>& ends : {std::vector<int>{60}, {7, 60}, {1, 2, 3, 20, 41, 59, 60}}) {
    SetUp();
    put(pod("old", kNoon - 60 * kMinuteMs));
    put(pod("new", kNoon + 20 * kMinuteMs));
    auto ended = pod("ended", kNoon + 5 * kMinuteMs, "Failed");
    ended.finished_ms = kNoon + 41 * kMinuteMs;
    put(ended);
    Seconds sum;
    int from = 0;
    for (const int end : ends) {
      for (const auto& [uid, value] : seconds(from, end)) {
        sum[uid] += value;
      }
      from = end;
    }
    EXPECT_EQ(sum, (Seconds{{"old", 3600}, {"new", 2400}, {"ended", 2160}}));
  }
}

TEST_F(K8sManagerTest, CountsTheGpusOfResourceClaimsAlsoWhenTheyAreGone) {
  kube::Pod made = pod("u", kNoon);
  made.limits = {};
  made.has_claims = true;
  put(made);
  claims_ =
      std::vector<kube::ClaimedDevices>{{.pod_uid = "u", .driver = "gpu.nvidia.com", .count = 2},
                                        {.pod_uid = "u", .driver = "nics.example.org", .count = 4},
                                        {.pod_uid = "v", .driver = "gpu.nvidia.com", .count = 1}};
  for (int window = 0; window < 2; ++window) {
    const auto units = fetch(15 * window, 15 * window + 15).value();
    ASSERT_EQ(units.size(), 1U);
    EXPECT_EQ(units[0].allocation, R"({"vcpus":0.001,"mem":1,"gpu.nvidia.com":2})");
    EXPECT_EQ(units[0].total_time_seconds.at("alloc_gputime"), 1800);
    claims_ = fail(ErrorCode::kUnavailable, "down");
  }
}

TEST_F(K8sManagerTest, DistinguishesPodsOfOneName) {
  auto first = pod("a", kNoon);
  auto second = pod("b", kNoon + kMinuteMs);
  first.name = second.name = "same";
  put(first);
  put(second);
  EXPECT_EQ(fetch(0, 15)->size(), 2U);
}

TEST_F(K8sManagerTest, FailsAWindowWithoutACompleteView) {
  pods_->down = true;
  const auto units = fetch(0, 15);
  ASSERT_FALSE(units);
  EXPECT_EQ(units.error().code, ErrorCode::kUnavailable);
  pods_->down = false;
  put(pod("u", kNoon));
  EXPECT_EQ(seconds(0, 15), (Seconds{{"u", 900}}));
}

TEST_F(K8sManagerTest, JoinsUsersOfFileBindingsAndPods) {
  put(pod("u", kNoon));
  ASSERT_TRUE(fetch(0, 15));
  EXPECT_THAT(people(), ElementsAre("lab: ada bob eve"));
  const auto result = manager_->fetch_users_projects(kPodWindow, {});
  ASSERT_EQ(result->users.size(), 3U);
  EXPECT_EQ(result->users[0].name, "ada");
  EXPECT_THAT(result->users[0].projects, ElementsAre("lab"));
}

TEST_F(K8sManagerTest, RevokesWithinOneRefresh) {
  auto made = pod("u", kNoon);
  made.annotations["ceems.io/created-by"] = "eve";
  made.created_ms =
      std::chrono::duration_cast<milliseconds>(clock_.now().time_since_epoch()).count() - 1000;
  put(made);
  ASSERT_TRUE(fetch(0, 15));
  EXPECT_THAT(people(), ElementsAre("lab: bob eve"));
  bindings_->users.clear();
  EXPECT_THAT(people(), ElementsAre("lab: bob")) << "also though a pod of hers is still there";
  made.uid = "v";
  made.created_ms += 5000;  // she was allowed to create another pod
  put(made);
  ASSERT_TRUE(fetch(15, 30));
  EXPECT_THAT(people(), ElementsAre("lab: bob eve"));
  users_file_ = config::parse_yaml("users: {}", "f");
  EXPECT_THAT(people(), ElementsAre("lab: eve"));
}

TEST_F(K8sManagerTest, RevokesNobodyWhenAListCannotBeRead) {
  EXPECT_THAT(people(), ElementsAre("lab: bob eve"));
  bindings_ = fail(ErrorCode::kUnavailable, "HTTP status 403");
  EXPECT_THAT(people(), ElementsAre("lab: bob eve"));
  bindings_ = kube::RoleBindingList{};
  EXPECT_THAT(people(), ElementsAre("lab: bob eve")) << "no cluster is without any role binding";
  users_file_ = config::parse_yaml("users:", "f");
  EXPECT_THAT(people(), ElementsAre("lab: bob eve"));
  users_file_ = fail(ErrorCode::kNotFound, "open f");
  EXPECT_THAT(people(), ElementsAre("lab: bob eve"));
}

TEST_F(K8sManagerTest, KeepsWhatTheDataBaseKnowsUntilAllListsWereReadOnce) {
  bindings_ = fail(ErrorCode::kUnavailable, "HTTP status 403");
  ASSERT_EQ(people().size(), 1U);
  EXPECT_THAT(people()[0], HasSubstr("needs list on rolebindings"));
  EXPECT_THAT(people()[0], HasSubstr("HTTP status 403"));
  bindings_ = kube::RoleBindingList{};
  EXPECT_THAT(people(), ElementsAre("lab: bob"));
}

TEST_F(K8sManagerTest, DoesWithoutTheUsersFileNobodyConfigured) {
  optional_ = true;
  users_file_ = fail(ErrorCode::kNotFound, "open f");
  SetUp();
  EXPECT_THAT(people(), ElementsAre("lab: eve"));
}

class K8sAccess : public ::testing::Test {
 protected:
  std::string write(const std::string& user) {
    return root_.write("config",
                       "current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\n"
                       "clusters: [{name: b, cluster: {server: 'http://h:1'}}]\n"
                       "users: [{name: c, user: " +
                           user + "}]\n");
  }
  testing::TempDir root_;
  testing::FakeClock clock_;
  testing::FakeRunner runner_;
};

TEST_F(K8sAccess, ReadsTheKubeconfigForEachConnection) {
  const auto connect = k8s_connect(write("{token: one}"), runner_, clock_);
  ASSERT_TRUE(connect) << connect.error().message;
  EXPECT_EQ((*connect)({})->server, "http://h:1");
  EXPECT_EQ((*connect)({})->options.authorization->credentials, "one");
  write("{token: two}");
  EXPECT_EQ((*connect)({})->options.authorization->credentials, "two");
  const auto missing = k8s_connect(root_.path() / "none", runner_, clock_);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("kubeconfig: open "));
}

TEST_F(K8sAccess, RunsAPluginAndKeepsItsTokenUntilItExpires) {
  int runs = 0;
  runner_.answer("plug", [&runs](const os::Command& command) -> Result<os::CommandResult> {
    EXPECT_THAT(command.arguments, ElementsAre("get-token"));
    EXPECT_EQ(command.environment.at("REGION"), "x");
    EXPECT_THAT(command.environment.at("KUBERNETES_EXEC_INFO"), HasSubstr("ExecCredential"));
    return os::CommandResult{
        .output = fmt::format(R"({{"kind": "ExecCredential", "status": {{"token": "t{}",
            "expirationTimestamp": "2026-01-01T01:00:00Z"}}}})",
                              ++runs)};
  });
  const auto connect = k8s_connect(
      write("{exec: {command: ./plug, args: [get-token], env: [{name: REGION, value: x}]}}"),
      runner_, clock_);
  ASSERT_TRUE(connect) << connect.error().message;
  EXPECT_EQ((*connect)({})->options.authorization->credentials, "t1");
  EXPECT_EQ((*connect)({})->options.authorization->credentials, "t1");
  clock_.advance(std::chrono::minutes(59) + std::chrono::seconds(30));
  EXPECT_EQ((*connect)({})->options.authorization->credentials, "t2");
}

TEST_F(K8sAccess, SaysWhatAPluginSaysButNoSecret) {
  const auto connect = k8s_connect(write("{exec: {command: ./plug}}"), runner_, clock_);
  ASSERT_TRUE(connect);
  runner_.reply("plug", {.exit_status = 3, .error_text = "log in first\n"});
  const auto refused = (*connect)({});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("exit status 3: log in first"));
  runner_.reply("plug", {.output = "5ecret"});
  const auto nonsense = (*connect)({});
  ASSERT_FALSE(nonsense);
  EXPECT_THAT(nonsense.error().message, HasSubstr("expected an ExecCredential"));
  EXPECT_THAT(nonsense.error().message, Not(HasSubstr("5ecret")));
}

}  // namespace
}  // namespace ceems::ingest
