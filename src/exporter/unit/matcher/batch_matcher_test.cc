#include <gtest/gtest.h>

#include "base/strings.h"
#include "exporter/unit/matcher/unit_matcher.h"

namespace ceems::exporter {
namespace {

using Kind = DirectoryMatch::Kind;

/// The uuid of the first unit on the way to `path`; "" if there is none.
std::string unit_at(const UnitMatcher& matcher, const std::string& path) {
  DirectoryMatch match{.kind = Kind::kDescend};
  std::string current = matcher.start();
  std::string_view rest = std::string_view(path).substr(current.size() + 1);
  while (!rest.empty() && match.kind != Kind::kSkip) {
    const std::string_view name = take_until(rest, '/');
    current += '/';
    current += name;
    match = matcher.match(current, name, match);
    if (match.kind == Kind::kUnit) {
      return UnitMatcher::uuid_of(match, current);
    }
  }
  return {};
}

TEST(LsfMatcher, FindsJobsAndElementsOfArraysByTheirIds) {
  const auto matcher = lsf_matcher();
  EXPECT_EQ(unit_at(*matcher, "/lsf/hpc1/job.6.4711.1767225600"), "6");
  EXPECT_EQ(unit_at(*matcher, "/lsf/hpc1/job.6[1].4711.1767225600"), "6[1]");
  EXPECT_EQ(unit_at(*matcher, "/lsf/hpc1/job.6[1].4711.1767225600/task"), "6[1]");
  EXPECT_EQ(unit_at(*matcher, R"(/lsf/hpc1/job.6\x5b12\x5d.4711.1767225600)"), "6[12]");
}

TEST(LsfMatcher, FindsThemAlsoInTheSliceOfAService) {
  const auto matcher = lsf_matcher();
  EXPECT_EQ(unit_at(*matcher, "/lsf.slice/hpc1/job.7.1.2"), "7");
  EXPECT_EQ(unit_at(*matcher, "/system.slice/lsfd.service/lsf/hpc1/job.7.1.2"), "7");
  EXPECT_EQ(unit_at(*matcher, "/system.slice/lsf/hpc1/job.7[3].1.2"), "7[3]");
  // Not at any depth, because that would be to list the whole hierarchy.
  EXPECT_EQ(unit_at(*matcher, "/a/b/lsf/hpc1/job.7.1.2"), "");
}

TEST(LsfMatcher, IgnoresOtherNames) {
  for (const char* const name :
       {"job.6", "job.6.1", "job.6.1.2.3", "job.x.1.2", "job..1.2", "job.6[].1.2", "job.6[a].1.2",
        "job.6[1]x.1.2", "job.6[1.1.2", "job.[1].1.2", "job.6].1.2", "job.6[1][2].1.2",
        "jobs.6.1.2", "6.1.2", "job.6.1.x", "job.-6.1.2", "job.123456789012345678901.1.2"}) {
    EXPECT_EQ(lsf_job_id(name), "") << name;
    EXPECT_EQ(unit_at(*lsf_matcher(), std::string("/lsf/hpc1/") + name), "") << name;
  }
  EXPECT_EQ(unit_at(*lsf_matcher(), "/slurm/hpc1/job.6.1.2"), "");
}

TEST(OpenpbsMatcher, FindsJobsAndElementsOfArraysByTheirIds) {
  const auto matcher = openpbs_matcher();
  EXPECT_EQ(unit_at(*matcher, "/pbs_jobs.service/jobid/12.srv"), "12.srv");
  EXPECT_EQ(unit_at(*matcher, "/pbs_jobs.service/jobid/12[3].srv"), "12[3].srv");
  EXPECT_EQ(unit_at(*matcher, "/pbs_jobs.service/jobs/12.pbs-1.example.org"),
            "12.pbs-1.example.org");
  EXPECT_EQ(unit_at(*matcher, "/system.slice/pbs_jobs.service/jobs/12[3].srv/x"), "12[3].srv");
  EXPECT_EQ(unit_at(*matcher, R"(/pbs_jobs.service/jobid/12\x5b3\x5d.srv)"), "12[3].srv");
  EXPECT_EQ(unit_at(*matcher, "/pbs.service/jobid/12.srv"), "12.srv");
  EXPECT_EQ(unit_at(*matcher, "/pbs_jobs.service/jobs/12"), "12");
}

TEST(OpenpbsMatcher, IgnoresOtherNames) {
  for (const char* const name : {"srv", "x12.srv", "12[].srv", "12[a].srv", "12[3.srv", "12]3.srv",
                                 "12.", "12[3]x", "12.s|v", "12.s v", "12[3][4].srv", "-12.srv"}) {
    EXPECT_EQ(openpbs_job_id(name), "") << name;
    EXPECT_EQ(unit_at(*openpbs_matcher(), std::string("/pbs_jobs.service/jobid/") + name), "")
        << name;
  }
  EXPECT_EQ(unit_at(*openpbs_matcher(), "/pbs_jobs.service/12.srv"), "");
  EXPECT_EQ(unit_at(*openpbs_matcher(), "/other.service/jobid/12.srv"), "");
  EXPECT_EQ(unit_at(*openpbs_matcher(), "/a/b/pbs_jobs.service/jobid/12.srv"), "");
}

TEST(Uuid, KeepsBracketsOfArraysOnly) {
  DirectoryMatch match{.kind = Kind::kUnit, .id = "6[1]"};
  EXPECT_EQ(UnitMatcher::uuid_of(match, "/x").substr(0, 5), "6_1_-");
  match.element = true;
  EXPECT_EQ(UnitMatcher::uuid_of(match, "/x"), "6[1]");
  match.id = "6[1]|7";
  EXPECT_EQ(UnitMatcher::uuid_of(match, "/x").substr(0, 7), "6[1]_7-");
}

TEST(PatternMatcher, LeavesOutTheJobsOfOtherCollectors) {
  const auto matcher = pattern_matcher({R"(^/(?P<id>(?:lsf|pbs_jobs|ssh).*)$)"},
                                       host::CgroupMode::kLegacy, {.lsf = true, .openpbs = true})
                           .value();
  EXPECT_EQ(unit_at(*matcher, "/lsf/hpc1/job.6.1.2"), "");
  EXPECT_EQ(unit_at(*matcher, "/pbs_jobs.service/jobid/12.srv"), "");
  EXPECT_EQ(unit_at(*matcher, "/ssh"), "ssh");
}

}  // namespace
}  // namespace ceems::exporter
