// Unsolicited mails: digests of months, and budgets.

#include "mail/fake_sender.h"

namespace ceems::mail {
namespace {

using store::kHour;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Half of the budget of fluids, which three people lead, one of them a service account.
PassedBudget passed_budget(const std::string& share) {
  return {.id = "fluids 2026 " + share,
          .project = "fluids",
          .period = "2026",
          .share = std::stod(share),
          .amount = 100,
          .used = 100 * std::stod(share),
          .forecast_low = 90,
          .forecast_high = 95,
          .leads = {"fluids:svc", "lea", "zoe"}};
}

TEST_F(SenderTest, SendsNoMailsAboutBudgetsUnlessTheyAreSwitchedOn) {
  reports_.passed = {passed_budget("0.5")};
  work();
  EXPECT_EQ(reports_.looked_at, 0);
  options_.budgets = Mode::kDryRun;
  restart();
  work();
  EXPECT_EQ(transport_.tries, 0);
  EXPECT_THAT(metrics(), HasSubstr("ceems_mail_total{state=\"dry\"} 2\n"));
}

TEST_F(SenderTest, TellsEachLeadOnceOfEachShareOfABudget) {
  options_.budgets = Mode::kEnabled;
  restart();
  work();
  EXPECT_EQ(transport_.tries, 0);
  reports_.passed = {passed_budget("0.5")};
  work();
  EXPECT_EQ(transport_.tries, 0) << "budgets are looked at once an hour";
  clock_.advance(std::chrono::hours(1) - std::chrono::milliseconds(1));
  work();
  EXPECT_EQ(reports_.looked_at, 1);
  clock_.advance(std::chrono::milliseconds(1));
  ::testing::internal::CaptureStderr();
  work();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("queued mails about budgets\" mails=2\n"));
  EXPECT_EQ(reports_.looked_at, 2) << "once for all mails of a round";
  ASSERT_EQ(transport_.sent.size(), 2U);
  EXPECT_THAT(transport_.sent[0].to, ElementsAre("lea@example.org"));
  EXPECT_THAT(transport_.sent[1].to, ElementsAre("zoe@example.org"));
  EXPECT_EQ(field(transport_.sent[0].message, "Subject"),
            "Budget fluids (all clusters), 2026: 50 % passed");
  EXPECT_EQ(field(transport_.sent[0].message, "List-Unsubscribe"),
            "<https://x.org/lea/budget-warnings>");
  // Mails that are done are forgotten after a month, these are not.
  for (int i = 0; i < 3; ++i) {
    clock_.advance(std::chrono::hours(24 * 32));
    restart();
    work();
  }
  EXPECT_EQ(transport_.tries, 2);
  reports_.passed = {passed_budget("0.8")};
  reports_.passed.front().leads = {"lea", "zoe"};
  auto outbox = db_->open_outbox();
  ASSERT_TRUE(outbox);
  ASSERT_TRUE((*outbox)->mute("zoe", std::string(kBudgetWarnings), store::kUntilWithdrawn));
  clock_.advance(std::chrono::hours(1));
  work();
  ASSERT_EQ(transport_.sent.size(), 3U);
  EXPECT_THAT(transport_.sent[2].to, ElementsAre("lea@example.org"));
  EXPECT_THAT(transport_.sent[2].message, HasSubstr("80 % passed"));
  EXPECT_THAT(metrics(), HasSubstr("ceems_mail_total{state=\"muted\"} 1\n"));
  clock_.advance(std::chrono::hours(1));
  ::testing::internal::CaptureStderr();
  work();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("queued mails")));
}

TEST_F(SenderTest, SendsNothingOfABudgetThatStandsOtherwiseMeanwhile) {
  options_.budgets = Mode::kEnabled;
  transport_.hands_over = false;
  transport_.outcome = net::MailOutcome::kTemporary;
  reports_.passed = {passed_budget("0.5")};
  restart();
  work();
  EXPECT_EQ(transport_.tries, 2);
  transport_.hands_over = true;
  transport_.outcome = net::MailOutcome::kSent;
  reports_.passed.front().leads = {"zoe"};  // lea does not lead any more
  clock_.advance(std::chrono::minutes(2));
  work();
  ASSERT_EQ(transport_.sent.size(), 1U);
  EXPECT_THAT(transport_.sent[0].to, ElementsAre("zoe@example.org"));
  EXPECT_THAT(metrics(), Not(HasSubstr("state=\"muted\"} 1\n")));
}

TEST_F(SenderTest, SendsNoDigestsOfMonthsUnlessTheyAreSwitchedOn) {
  clock_.advance(std::chrono::hours(24 * 3));
  work();
  EXPECT_EQ(reports_.listed, 0);
  EXPECT_EQ(transport_.tries, 0);
}

TEST_F(SenderTest, SendsEachUserOneDigestOfAMonth) {
  options_.monthly = Mode::kEnabled;
  restart();
  work();
  clock_.advance(std::chrono::hours(36) - std::chrono::milliseconds(1));
  work();
  EXPECT_EQ(transport_.tries, 0) << "the last reports of the month come first";
  clock_.advance(std::chrono::milliseconds(1));
  ::testing::internal::CaptureStderr();
  work();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("queued the digests of a month\" month=2025-12 mails=2\n"));
  ASSERT_EQ(transport_.sent.size(), 2U);
  EXPECT_THAT(transport_.sent[0].to, ElementsAre("ada@example.org"));
  EXPECT_THAT(transport_.sent[1].to, ElementsAre("bob@example.org"));
  EXPECT_EQ(field(transport_.sent[0].message, "Subject"), "Month 2025-12: 41.3 kWh");
  EXPECT_EQ(field(transport_.sent[0].message, "List-Unsubscribe"),
            "<https://x.org/ada/monthly-digest>");
  EXPECT_THAT(reports_.asked, ElementsAre("ada 2025-12 -", "bob 2025-12 -"));
  work();
  EXPECT_EQ(reports_.listed, 1) << "users are listed once";
  restart();
  ::testing::internal::CaptureStderr();
  work();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("queued the digests")));
  clock_.advance(std::chrono::hours(24));
  restart();
  work();
  EXPECT_EQ(transport_.tries, 2) << "once, however often the program starts";
}

TEST_F(SenderTest, SendsADigestOfAMonthOnceEvenIfItIsKilled) {
  options_.monthly = Mode::kEnabled;
  clock_.advance(std::chrono::hours(36));
  transport_.hands_over = false;  // as if the connection broke before
  transport_.outcome = net::MailOutcome::kTemporary;
  restart();
  work();
  EXPECT_EQ(transport_.tries, 2);
  transport_.hands_over = true;
  transport_.outcome = net::MailOutcome::kSent;
  restart();
  clock_.advance(std::chrono::minutes(2));
  work();
  EXPECT_EQ(transport_.sent.size(), 2U) << "nothing is lost";
  // The program ends between handing over and the note of it.
  auto outbox = db_->open_outbox();
  ASSERT_TRUE(outbox);
  reports_.month = {.name = "2026-01", .ended_ms = kNow};
  ASSERT_TRUE((*outbox)->add({{.id = "month 2026-01 ada",
                               .kind = "month",
                               .username = "ada",
                               .recipient = "ada",
                               .body = "2026-01"}}));
  ASSERT_TRUE((*outbox)->hand_over({"month 2026-01 ada"}));
  restart();
  work();
  ASSERT_EQ(transport_.sent.size(), 3U);
  EXPECT_THAT(transport_.sent[2].to, ElementsAre("bob@example.org"));
}

TEST_F(SenderTest, LetsMailsAboutJobsPassManyDigests) {
  options_.monthly = Mode::kEnabled;
  reports_.users.clear();
  for (int i = 0; i < 60; ++i) {
    reports_.users.push_back(fmt::format("u{}", i));
  }
  clock_.advance(std::chrono::hours(36));
  restart();
  work();
  EXPECT_EQ(transport_.sent.size(), 50U);
  put(ended("7"));
  work();
  EXPECT_EQ(transport_.sent.size(), 51U);
  clock_.advance(std::chrono::milliseconds(99));
  work();
  EXPECT_EQ(transport_.sent.size(), 51U) << "twice the time that 50 mails take";
  clock_.advance(std::chrono::milliseconds(1));
  work();
  EXPECT_EQ(transport_.sent.size(), 61U);
}

TEST_F(SenderTest, SendsNoDigestLate) {
  options_.monthly = Mode::kEnabled;
  clock_.advance(std::chrono::hours(24 * 10) + std::chrono::milliseconds(1));
  restart();
  work();
  EXPECT_EQ(reports_.listed, 0);
  reports_.month.ended_ms = kNow + 1;
  work();
  EXPECT_EQ(reports_.listed, 1) << "until ten days after its end";
}

TEST_F(SenderTest, DigestsBeginWithADryRunOfTheirOwn) {
  options_.monthly = Mode::kEnabled;
  options_.dry_run_days = 30;
  reports_.month.ended_ms = kNow - 2 * 24 * kHour;
  restart();
  work();
  EXPECT_EQ(transport_.tries, 0);
  EXPECT_THAT(metrics(), HasSubstr("ceems_mail_total{state=\"dry\"} 2\n"));
  EXPECT_THAT(metrics(), HasSubstr("ceems_mail_dry_run_people 2\n"));
  options_.monthly = Mode::kDryRun;
  options_.dry_run_days = 0;
  reports_.month.name = "2026-01";
  restart();
  work();
  EXPECT_EQ(transport_.tries, 0);
  options_.monthly = Mode::kEnabled;
  reports_.month.name = "2026-02";
  restart();
  work();
  EXPECT_EQ(transport_.sent.size(), 2U);
}

TEST_F(SenderTest, SendsNoDigestToThoseWhoDoNotWantIt) {
  options_.monthly = Mode::kEnabled;
  reports_.users = {"ada", "bob", "eve", "leo"};
  auto outbox = db_->open_outbox();
  ASSERT_TRUE(outbox);
  ASSERT_TRUE((*outbox)->mute("ada", "monthly-digest", store::kUntilWithdrawn));
  ASSERT_TRUE((*outbox)->mute("bob", "*", store::kUntilWithdrawn));
  ASSERT_TRUE((*outbox)->mute("eve", "time-limit", kNow + 100 * 24 * kHour));
  clock_.advance(std::chrono::hours(36));
  restart();
  work();
  ASSERT_EQ(transport_.sent.size(), 2U);
  EXPECT_THAT(transport_.sent[0].to, ElementsAre("eve@example.org"));
  EXPECT_THAT(reports_.asked, ElementsAre("eve 2025-12 -time-limit", "leo 2025-12 -"));
  EXPECT_THAT(metrics(), HasSubstr("ceems_mail_total{state=\"muted\"} 2\n"));
  reports_.month.name = "2026-01";
  reports_.used = false;
  restart();
  work();
  EXPECT_EQ(transport_.tries, 2) << "nothing was used";
  EXPECT_THAT(metrics(), HasSubstr("ceems_mail_total{state=\"muted\"} 2\n")) << "not muted";
}

}  // namespace
}  // namespace ceems::mail
