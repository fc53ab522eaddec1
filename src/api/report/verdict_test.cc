#include "api/report/verdict.h"

#include <initializer_list>
#include <utility>

#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using advice::Severity;
using store::Verdict;

report::Report judged_run(std::initializer_list<std::pair<const char*, Severity>> findings = {}) {
  report::Report report;
  report.coverage = 1;
  report.job.elapsed = 3600;
  report.job.state = "COMPLETED";
  for (const auto& [rule, severity] : findings) {
    report.findings.push_back({.rule = rule, .severity = severity});
  }
  return report;
}

TEST(VerdictOf, IsThatOfTheMostSeriousFinding) {
  EXPECT_EQ(verdict_of(judged_run()), Verdict::kFits);
  EXPECT_EQ(verdict_of(judged_run({{"good", Severity::kGood}})), Verdict::kFits);
  EXPECT_EQ(verdict_of(judged_run({{"mem-excess", Severity::kInfo}})), Verdict::kFits);
  EXPECT_EQ(verdict_of(judged_run({{"mem-excess", Severity::kSuggest}})), Verdict::kSmaller);
  EXPECT_EQ(verdict_of(judged_run(
                {{"mem-excess", Severity::kSuggest}, {"gpu-unused", Severity::kImportant}})),
            Verdict::kLook);
  EXPECT_EQ(verdict_of(judged_run({{"mem-excess", Severity::kImportant}})), Verdict::kLook);
}

TEST(VerdictOf, CallsOnlyAdviceOnReservationsSmaller) {
  for (const char* rule : {"idle", "mem-tight", "rule-of-the-site"}) {
    EXPECT_EQ(
        verdict_of(judged_run({{"time-limit", Severity::kSuggest}, {rule, Severity::kSuggest}})),
        Verdict::kLook)
        << rule;
  }
}

TEST(VerdictOf, IsUnknownWhereTooLittleIsKnownOrTheRunFailed) {
  auto report = judged_run();
  report.coverage = 0.89;
  EXPECT_EQ(verdict_of(report), Verdict::kUnknown);
  report.findings.push_back({.rule = "timeout", .severity = Severity::kImportant});
  EXPECT_EQ(verdict_of(report), Verdict::kLook);
  report = judged_run();
  report.coverage.reset();
  EXPECT_EQ(verdict_of(report), Verdict::kUnknown);
  report = judged_run();
  report.job.elapsed = 299;
  EXPECT_EQ(verdict_of(report), Verdict::kUnknown);
  for (const char* state : {"FAILED", "Failed", "NODE_FAIL", "EXIT"}) {
    report = judged_run();
    report.job.state = state;
    EXPECT_EQ(verdict_of(report), Verdict::kUnknown) << state;
  }
  report = judged_run();
  report.job.state = "CANCELLED by 1000";
  EXPECT_EQ(verdict_of(report), Verdict::kFits);
}

}  // namespace
}  // namespace ceems::api
