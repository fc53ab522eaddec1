#include "exporter/unit/matcher/unit_matcher.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace ceems::exporter {
namespace {

using host::CgroupMode;
using Kind = DirectoryMatch::Kind;

/// The matches of the directories on the way to `path`, down to the first unit.
DirectoryMatch find(const UnitMatcher& matcher, const std::string& path) {
  DirectoryMatch match{.kind = Kind::kDescend};
  std::string current = matcher.start();
  std::string_view rest = std::string_view(path).substr(current.size() + 1);
  while (!rest.empty() && match.kind != Kind::kUnit && match.kind != Kind::kSkip) {
    const std::string_view name = take_until(rest, '/');
    current += '/';
    current += name;
    match = matcher.match(current, name, match);
  }
  return match;
}

std::string uuid(const UnitMatcher& matcher, const std::string& path) {
  const DirectoryMatch match = find(matcher, path);
  return match.kind == Kind::kUnit ? UnitMatcher::uuid_of(match, path) : "";
}

TEST(SlurmMatcher, FindsJobsInV1) {
  const auto matcher = slurm_matcher(CgroupMode::kLegacy);
  const auto job = find(*matcher, "/slurm/uid_1000/job_211/step_0/task_0");
  EXPECT_EQ(job.kind, Kind::kUnit);
  EXPECT_EQ(job.id, "211");
  EXPECT_EQ(job.host, "");
  EXPECT_EQ(find(*matcher, "/slurm_my_host/uid_1000/job_211").host, "my_host");
  EXPECT_EQ(find(*matcher, "/slurm_host0/uid_1000").kind, Kind::kDescend);
  EXPECT_EQ(find(*matcher, "/slurmd.service/job_1").kind, Kind::kSkip);
}

TEST(SlurmMatcher, FindsJobsInV2) {
  const auto matcher = slurm_matcher(CgroupMode::kUnified);
  EXPECT_EQ(find(*matcher, "/system.slice/slurmstepd.scope/job_1/step_0").id, "1");
  EXPECT_EQ(find(*matcher, "/system.slice/my_node0_slurmstepd.scope/job_7").host, "my_node0");
  EXPECT_EQ(find(*matcher, "/system.slice/a\\x2db_slurmstepd.scope/job_7").host, "a-b");
  EXPECT_EQ(find(*matcher, "/system.slice/docker-1.scope/system.slice/slurmstepd.scope/job_9").id,
            "9");
  EXPECT_NE(find(*matcher, "/system.slice/slurmd.service/job_1").kind, Kind::kUnit);
  EXPECT_EQ(find(*matcher, "/user.slice/slurmstepd.scope/job_1").kind, Kind::kSkip);
  EXPECT_EQ(find(*matcher, "/slurmstepd.scope/job_1").kind, Kind::kSkip);
}

TEST(SlurmMatcher, FindsJobsInOtherSlices) {
  const auto matcher = slurm_matcher(CgroupMode::kUnified);
  const auto job =
      find(*matcher, "/batch.slice/batch-slurm.slice/n1_slurmstepd.scope/job_5/step_0");
  EXPECT_EQ(job.id, "5");
  EXPECT_EQ(job.host, "n1");
  EXPECT_TRUE(job.forgeable);
  EXPECT_FALSE(find(*matcher, "/system.slice/slurmstepd.scope/job_5").forgeable);
  EXPECT_EQ(find(*matcher, "/docker/0123/system.slice/slurmstepd.scope/job_5").kind, Kind::kSkip);
}

TEST(SlurmMatcher, FindsJobsInPodsOfKubernetes) {
  const auto matcher = slurm_matcher(CgroupMode::kUnified);
  const std::string pod =
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-"
      "pod2fc932ce_fdcc_454b_97bd_aadfdeb4c340.slice/cri-containerd-0123456789abcdef.scope";
  for (const std::string scope : {"/system.slice/slurmstepd.scope", "/slurmstepd.scope"}) {
    const auto job = find(*matcher, pod + scope + "/job_12/step_0");
    EXPECT_EQ(job.id, "12");
    EXPECT_EQ(job.host, "2fc932ce-fdcc-454b-97bd-aadfdeb4c340");
  }
  EXPECT_EQ(find(*matcher, pod + "/system.slice/c1_slurmstepd.scope/job_12").host, "c1");
  EXPECT_EQ(find(*matcher, "/kubepods/besteffort/podab-12/0123/slurmstepd.scope/job_3").host,
            "ab-12");
  EXPECT_NE(find(*matcher, pod + "/job_12").kind, Kind::kUnit);
}

TEST(SlurmMatcher, FindsJobsInPodsOfKubernetesInV1) {
  const auto matcher = slurm_matcher(CgroupMode::kLegacy);
  const std::string systemd =
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-"
      "pod2fc932ce_fdcc_454b_97bd_aadfdeb4c340.slice/cri-containerd-0123456789abcdef.scope";
  for (const std::string& pod :
       {systemd, std::string("/kubepods/besteffort/pod2fc932ce-fdcc-454b-97bd-aadfdeb4c340/01")}) {
    const auto job = find(*matcher, pod + "/slurm/uid_1000/job_12/step_0");
    EXPECT_EQ(job.kind, Kind::kUnit);
    EXPECT_EQ(job.id, "12");
    EXPECT_EQ(job.host, "2fc932ce-fdcc-454b-97bd-aadfdeb4c340");
    EXPECT_FALSE(job.forgeable);
    EXPECT_EQ(find(*matcher, pod + "/slurm_c1/uid_1000/job_12").host, "c1");
    EXPECT_NE(find(*matcher, pod + "/uid_1000/job_12").kind, Kind::kUnit);
    EXPECT_NE(find(*matcher, pod + "/slurmstepd.scope/job_12").kind, Kind::kUnit);
  }
  for (const std::string top : {"/system.slice", "/user.slice", "/docker", "/machine.slice"}) {
    EXPECT_EQ(find(*matcher, top + "/slurm/uid_1000/job_12").kind, Kind::kSkip) << top;
  }
}

TEST(SlurmMatcher, MatchesWholeNamesOnly) {
  const auto matcher = slurm_matcher(CgroupMode::kUnified);
  const std::string scope = "/system.slice/slurmstepd.scope/";
  for (const std::string name : {"job_", "job_1x", "job_1\n2", "xjob_1", "job_-1", "job_1 "}) {
    EXPECT_NE(find(*matcher, scope + name).kind, Kind::kUnit) << name;
  }
}

TEST(SlurmMatcher, FindsJobsBySluid) {
  const auto matcher = slurm_matcher(CgroupMode::kUnified);
  const auto job = find(*matcher, "/system.slice/slurmstepd.scope/s0123456789ABC/step_0");
  EXPECT_EQ(job.kind, Kind::kUnit);
  EXPECT_TRUE(job.sluid);
  EXPECT_EQ(job.id, "s0123456789ABC");
}

TEST(Sluid, HasFourteenCharactersOfTheAlphabet) {
  EXPECT_TRUE(is_sluid("sZZZZZZZZZZZZZ"));
  EXPECT_FALSE(is_sluid("sZZZZZZZZZZZZ"));
  EXPECT_FALSE(is_sluid("sZZZZZZZZZZZZI"));  // I, L, O and U are left out
  EXPECT_FALSE(is_sluid("sZZZZZZZZZZZZz"));
  EXPECT_FALSE(is_sluid("xZZZZZZZZZZZZZ"));
}

class DefaultPatterns : public ::testing::Test {
 protected:
  std::unique_ptr<UnitMatcher> matcher_ = *pattern_matcher({}, CgroupMode::kUnified, {});
  const std::string digits_ = std::string(64, 'a');
};

TEST_F(DefaultPatterns, FindServicesAndScopes) {
  EXPECT_EQ(uuid(*matcher_, "/system.slice/ssh.service"), "ssh.service");
  EXPECT_EQ(uuid(*matcher_, "/system.slice/system-getty.slice/getty@tty1.service"),
            "getty@tty1.service");
  EXPECT_EQ(uuid(*matcher_, "/user.slice/user-1000.slice/session-2.scope"), "session-2.scope");
  EXPECT_EQ(uuid(*matcher_, "/init.scope"), "init.scope");
  EXPECT_EQ(uuid(*matcher_, "/system.slice"), "");
  EXPECT_EQ(uuid(*matcher_, "/user.slice/user-1000.slice"), "");
}

TEST_F(DefaultPatterns, FindApplicationsOfUsersNotTheirServiceManager) {
  const std::string manager = "/user.slice/user-1000.slice/user@1000.service";
  EXPECT_EQ(uuid(*matcher_, manager), "");
  EXPECT_EQ(uuid(*matcher_, manager + "/app.slice/app-firefox-12.scope"),
            "app-firefox-12.scope-u1000");
  EXPECT_EQ(uuid(*matcher_, manager + "/session.slice/dbus.service"), "dbus.service-u1000");
}

TEST_F(DefaultPatterns, FindContainers) {
  EXPECT_EQ(uuid(*matcher_, "/system.slice/docker-" + digits_ + ".scope"), "docker-aaaaaaaaaaaa");
  EXPECT_EQ(uuid(*matcher_, "/machine.slice/libpod-" + digits_ + ".scope"), "libpod-aaaaaaaaaaaa");
  EXPECT_EQ(uuid(*matcher_, "/docker/" + digits_), "aaaaaaaaaaaa");
  EXPECT_EQ(uuid(*matcher_, "/default/web1"), "web1");
  EXPECT_EQ(uuid(*matcher_, "/lxc.payload.web"), "lxc.payload.web");
  EXPECT_EQ(uuid(*matcher_, "/lxc/web"), "web");
  EXPECT_EQ(uuid(*matcher_, "/openrc/sshd"), "sshd");
}

TEST_F(DefaultPatterns, OutermostMatchWins) {
  const auto match = find(*matcher_, "/system.slice/docker.service/nested/inner.scope");
  EXPECT_EQ(match.id, "docker.service");
}

TEST(PatternMatcher, TakesIdAndHostFromGroups) {
  const auto matcher =
      pattern_matcher({R"(/pbs/(?P<host>[a-z]+)/(?P<id>[0-9]+\.srv))", R"(^/flux/(?P<id>[^/]+)$)"},
                      CgroupMode::kLegacy, {});
  ASSERT_TRUE(matcher);
  const auto match = find(**matcher, "/pbs/moab/12.srv/task");
  EXPECT_EQ(match.id, "12.srv");
  EXPECT_EQ(match.host, "moab");
  EXPECT_EQ(find(**matcher, "/flux/f1").id, "f1");
  EXPECT_NE(find(**matcher, "/system.slice/ssh.service").kind, Kind::kUnit);
}

TEST(PatternMatcher, ReportsWhatIsWrongWithAPattern) {
  EXPECT_EQ(pattern_matcher({"("}, CgroupMode::kUnified, {}).error().message,
            "pattern '(': missing ): (");
  EXPECT_EQ(pattern_matcher({"a"}, CgroupMode::kUnified, {}).error().message,
            "pattern 'a': expected a group (?P<id>...) for the unit's name");
}

TEST(PatternMatcher, LeavesSlurmOutWhereItHasACollector) {
  const auto v2 = *pattern_matcher({}, CgroupMode::kUnified, {.slurm = true});
  EXPECT_EQ(find(*v2, "/system.slice/slurmstepd.scope").kind, Kind::kSkip);
  EXPECT_EQ(find(*v2, "/system.slice/slurmd.service").kind, Kind::kUnit);
  const auto v1 = *pattern_matcher({}, CgroupMode::kLegacy, {.slurm = true});
  EXPECT_EQ(find(*v1, "/slurm_n1").kind, Kind::kSkip);
}

TEST(Uuid, KeepsHarmlessNames) {
  EXPECT_EQ(UnitMatcher::uuid_of({.kind = Kind::kUnit, .id = "a.B-1_2:3@4+5"}, "/x"),
            "a.B-1_2:3@4+5");
}

TEST(Uuid, MakesHostileNamesHarmlessAndDistinct) {
  const auto of = [](const std::string& id) {
    return UnitMatcher::uuid_of({.kind = Kind::kUnit, .id = id}, "/" + id);
  };
  const std::string injected = of("a\"} 1\nx{b=\"");
  EXPECT_EQ(injected.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-"),
            std::string::npos);
  EXPECT_NE(of("a\"b"), of("a\nb"));
  EXPECT_NE(of("a b"), of("a_b"));
  EXPECT_EQ(of("a b"), of("a b"));
  EXPECT_NE(of(std::string(255, 'x')), of(std::string(254, 'x')));
  EXPECT_LE(of(std::string(255, 'x')).size(), UnitMatcher::kMaxUuid);
}

}  // namespace
}  // namespace ceems::exporter
