#include "mail/sender.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "base/strings.h"
#include "store/test_database.h"

namespace ceems::mail {
namespace {

using store::kHour;
using store::kNow;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class FakeReports final : public ReportSource {
 public:
  Result<std::optional<KnownReport>> report(const std::string& cluster_id,
                                            const std::string& user,
                                            const std::string& job,
                                            std::int64_t /*ended_after_ms*/) override {
    asked.push_back(fmt::format("{} {} {}", cluster_id, user, job));
    return known;
  }
  Result<> add_energy(const std::string& /*cluster_id*/,
                      const std::string& /*user*/,
                      const std::vector<std::string>& jobs,
                      ArraySums& sums) override {
    sums.known = jobs.size();
    sums.kwh = static_cast<double>(jobs.size()) / 100;
    return {};
  }
  [[nodiscard]] EndedMonth last_month() const override { return month; }
  Result<std::vector<std::string>> users_of(const std::string& /*month*/) override {
    ++listed;
    return users;
  }
  Result<std::optional<report::Digest>> digest(const std::string& user,
                                               const std::string& name,
                                               const std::vector<std::string>& without) override {
    asked.push_back(fmt::format("{} {} -{}", user, name, fmt::join(without, ",")));
    return used ? std::optional(
                      report::Digest{.user = user, .months = {{.month = name, .kwh = 41.3}}})
                : std::nullopt;
  }
  Result<std::vector<PassedBudget>> passed_budgets() override {
    ++looked_at;
    return passed;
  }
  std::vector<PassedBudget> passed;
  int looked_at = 0;
  std::optional<KnownReport> known;
  std::vector<std::string> asked;
  EndedMonth month{.name = "2025-12", .ended_ms = kNow};
  std::vector<std::string> users{"ada", "bob", "fluids:svc", "two words"};
  bool used = true;
  int listed = 0;
};

class FakeTransport final : public Transport {
 public:
  struct Sent {
    std::vector<std::string> to;
    std::string message;
  };
  net::MailAnswer send(const std::string& /*from*/,
                       const std::vector<std::string>& to,
                       const std::string& message,
                       const std::function<bool()>& handing_over,
                       const std::stop_token& /*stop*/) override {
    ++tries;
    if (hands_over && !handing_over()) {
      return {.outcome = net::MailOutcome::kTemporary, .problem = "withdrawn"};
    }
    if (outcome == net::MailOutcome::kSent) {
      sent.push_back({to, message});
    }
    return {.outcome = outcome, .problem = "as the test wants"};
  }
  std::vector<Sent> sent;
  bool hands_over = true;
  net::MailOutcome outcome = net::MailOutcome::kSent;
  int tries = 0;
};

/// The value of a header field as it stands there.
std::string field(const std::string& message, const std::string& name) {
  const std::size_t begin = message.find("\r\n" + name + ": ");
  return begin == std::string::npos
             ? "(none)"
             : message.substr(begin + name.size() + 4,
                              message.find("\r\n", begin + 2) - begin - name.size() - 4);
}

class SenderTest : public store::AnyDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(AnyDatabase::SetUp());
    options_.mode = Mode::kEnabled;
    options_.spool = spool_.path();
    options_.spool_users = {};
    options_.from = "ceems@example.org";
    options_.domain = "example.org";
    options_.rate = 1000;
    options_.dry_run_days = 0;
    reports_.known = KnownReport{.report = {}, .final = true};
    reports_.known->report.state = report::State::kFinal;
    reports_.known->report.uuid = "7";
    reports_.known->report.energy.kwh = 1.5;
    reports_.known->report.findings = {{.rule = "time-limit", .text = {{"en", "Ask for less."}}}};
    restart();
  }
  /// As after a kill: only what is in the database and in the spool is left.
  void restart() {
    registry_ = std::make_unique<metrics::Registry>("test", "the test");
    sender_ = std::make_unique<Sender>(
        SenderSetup{.options = options_,
                    .clusters = {"hpc-a"},
                    .mute_url =
                        [](const std::string& user, const std::string& rule) {
                          return "https://x.org/" + user + "/" + rule;
                        },
                    .open_outbox = [this] { return db_->open_outbox(); }},
        reports_, transport_, *registry_, clock_);
  }
  static SpoolMail ended(const std::string& job, const std::string& array = "") {
    SpoolMail mail{.subject = "Slurm Job_id=" + job + " Ended",
                   .recipient = "ada",
                   .job = {{"SLURM_JOB_ID", job},
                           {"SLURM_JOB_NAME", "relax"},
                           {"SLURM_JOB_USER", "ada"},
                           {"SLURM_JOB_STATE", "COMPLETED"},
                           {"SLURM_JOB_RUN_TIME", "00:10:00"},
                           {"SLURM_CLUSTER_NAME", "hpc-a"}},
                   .at_ms = kNow};
    if (!array.empty()) {
      mail.job["SLURM_ARRAY_JOB_ID"] = array;
      mail.job["SLURM_ARRAY_TASK_ID"] = "1";
    }
    return mail;
  }
  void put(const SpoolMail& mail) { ASSERT_TRUE(write_spool_mail(spool_.path(), mail)); }
  void work() {
    const auto done = sender_->work({});
    EXPECT_TRUE(done) << done.error().message;
  }
  std::size_t files() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(spool_.path()), {}));
  }
  std::string metrics() {
    std::string page;
    registry_->append_page(page);
    std::string text;
    for (const std::string_view line : split(page, '\n')) {
      if (line.starts_with("ceems_mail")) {
        text.append(line).append("\n");
      }
    }
    return text;
  }

  testing::TempDir spool_;
  Options options_;
  FakeReports reports_;
  FakeTransport transport_;
  std::unique_ptr<metrics::Registry> registry_;
  std::unique_ptr<Sender> sender_;
};

TEST_F(SenderTest, SendsAReportOnce) {
  put(ended("7"));
  work();
  ASSERT_EQ(transport_.sent.size(), 1U);
  const auto& [to, message] = transport_.sent[0];
  EXPECT_THAT(to, ElementsAre("ada@example.org"));
  EXPECT_EQ(field(message, "Subject"), "hpc-a job 7 relax: COMPLETED, 1.5 kWh, 1 suggestion");
  EXPECT_EQ(field(message, "List-Unsubscribe"), "<https://x.org/ada/*>");
  EXPECT_EQ(field(message, "List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
  EXPECT_THAT(reports_.asked, ElementsAre("hpc-a ada 7"));
  EXPECT_EQ(files(), 0U);
  work();
  restart();
  work();
  EXPECT_EQ(transport_.tries, 1);
}

TEST_F(SenderTest, PassesOtherMailsOnUnchanged) {
  SpoolMail begun = ended("7");
  begun.subject = "Slurm Job_id=7 Name=a\r\nBcc: eve Began";
  begun.body = "the body";
  begun.job.erase("SLURM_JOB_RUN_TIME");
  put(begun);
  SpoolMail elsewhere = ended("8");
  elsewhere.recipient = "x@y.org";
  elsewhere.job.erase("SLURM_JOB_USER");
  elsewhere.at_ms += 1;
  put(elsewhere);
  work();
  ASSERT_EQ(transport_.sent.size(), 2U);
  EXPECT_EQ(field(transport_.sent[0].message, "Subject"), "Slurm Job_id=7 Name=a  Bcc: eve Began");
  EXPECT_THAT(transport_.sent[0].message, HasSubstr("dGhlIGJvZHk="));
  EXPECT_THAT(transport_.sent[0].message, Not(HasSubstr("List-Unsubscribe")));
  EXPECT_THAT(transport_.sent[1].to, ElementsAre("x@y.org"));
  EXPECT_THAT(reports_.asked, IsEmpty());
}

TEST_F(SenderTest, WaitsForTheReportButNotForEver) {
  reports_.known.reset();
  put(ended("7"));
  work();
  clock_.advance(std::chrono::minutes(4));
  work();
  EXPECT_EQ(transport_.tries, 0);
  reports_.known = KnownReport{.report = {}, .final = false};
  clock_.advance(std::chrono::minutes(1));
  work();
  ASSERT_EQ(transport_.sent.size(), 1U);
  // VGhlIHJlcG9ydCBpcyBub3QgY29tcGxldGUgeWV0 is "The report is not complete yet".
  EXPECT_THAT(transport_.sent[0].message, HasSubstr("VGhlIHJlcG9ydCBpcyBub3QgY29tcGxldGUgeWV0"));
}

TEST_F(SenderTest, MakesOneMailOfAnArray) {
  constexpr int kTasks = 5000;
  for (int i = 0; i < kTasks; ++i) {
    SpoolMail task = ended(std::to_string(10'000 + i), "9999");
    task.at_ms += i;
    if (i % 500 == 0) {
      task.job["SLURM_JOB_STATE"] = "FAILED";
    }
    put(task);
  }
  work();
  EXPECT_EQ(files(), 0U);
  clock_.advance(std::chrono::minutes(9));
  put(ended("20000", "9999"));
  work();
  clock_.advance(std::chrono::minutes(9));
  work();
  EXPECT_EQ(transport_.tries, 0) << "ten minutes of quiet";
  restart();
  clock_.advance(std::chrono::minutes(1));
  work();
  ASSERT_EQ(transport_.sent.size(), 1U);
  EXPECT_THAT(field(transport_.sent[0].message, "Subject"), HasSubstr("=?UTF-8?B?"));
  EXPECT_THAT(transport_.sent[0].message, HasSubstr("Message-ID: <ceems."));
  work();
  EXPECT_EQ(transport_.tries, 1);
  EXPECT_EQ(reports_.asked.size(), 1U) << "the report of one task";
  EXPECT_THAT(metrics(), HasSubstr("ceems_mail_queued 0\n"));
}

TEST_F(SenderTest, SendsADigestAfterAnHourAtTheLatest) {
  for (int minute = 0; minute < 60; minute += 5) {
    put(ended(std::to_string(100 + minute), "9"));
    work();
    clock_.advance(std::chrono::minutes(5));
  }
  EXPECT_EQ(transport_.tries, 0);
  work();
  EXPECT_EQ(transport_.sent.size(), 1U);
}

TEST_F(SenderTest, TriesAgainWithTheSameMessageId) {
  transport_.outcome = net::MailOutcome::kTemporary;
  put(ended("7"));
  work();
  work();
  EXPECT_EQ(transport_.tries, 1) << "not at once";
  clock_.advance(std::chrono::minutes(1));
  work();
  EXPECT_EQ(transport_.tries, 2);
  clock_.advance(std::chrono::minutes(1));
  work();
  EXPECT_EQ(transport_.tries, 2) << "two minutes now";
  restart();
  transport_.outcome = net::MailOutcome::kSent;
  clock_.advance(std::chrono::minutes(1));
  work();
  EXPECT_EQ(transport_.tries, 3);
  ASSERT_EQ(transport_.sent.size(), 1U);
  const std::string id = field(transport_.sent[0].message, "Message-ID");
  EXPECT_THAT(id, ::testing::MatchesRegex("<ceems\\.[0-9a-f]{32}@example\\.org>"));
  transport_.outcome = net::MailOutcome::kTemporary;
  put(ended("8"));
  for (int i = 0; i < 50; ++i) {
    work();
    clock_.advance(std::chrono::hours(1));
  }
  EXPECT_EQ(transport_.tries, 3 + 12) << "and gives up";
}

TEST_F(SenderTest, NeverSendsAMailAgainThatMayHaveArrived) {
  transport_.outcome = net::MailOutcome::kUnknown;
  put(ended("7"));
  work();
  EXPECT_THAT(metrics(), HasSubstr("ceems_mail_total{state=\"unknown\"} 1\n"));
  // The program ends between handing over and the note of it.
  put(ended("8"));
  {
    auto outbox = db_->open_outbox();
    ASSERT_TRUE(outbox);
    transport_.outcome = net::MailOutcome::kTemporary;
    work();
    clock_.advance(std::chrono::hours(2));
    const auto due = (*outbox)->due(kNow + kHour, 10);
    ASSERT_TRUE(due);
    ASSERT_EQ(due->size(), 1U);
    ASSERT_TRUE((*outbox)->hand_over({due->front().id}));
  }
  transport_.outcome = net::MailOutcome::kSent;
  restart();
  work();
  EXPECT_THAT(transport_.sent, IsEmpty());
  EXPECT_THAT(metrics(), HasSubstr("ceems_mail_total{state=\"unknown\"} 1\n"));
}

TEST_F(SenderTest, TakesAFileOnceEvenIfItStays) {
  put(ended("7"));
  const std::filesystem::path file = *std::filesystem::directory_iterator(spool_.path());
  const auto copy = std::filesystem::temp_directory_path() / file.filename();
  std::filesystem::copy_file(file, copy);
  work();
  // As if the program had been killed before it removed the file.
  std::filesystem::rename(copy, file);
  restart();
  work();
  EXPECT_EQ(transport_.tries, 1);
  EXPECT_EQ(files(), 0U);
}

TEST_F(SenderTest, SendsNoReportsInADryRun) {
  options_.dry_run_days = 30;
  restart();
  put(ended("7"));
  work();
  ASSERT_EQ(transport_.sent.size(), 1U) << "what slurmctld sends anyway";
  EXPECT_EQ(field(transport_.sent[0].message, "Subject"), "Slurm Job_id=7 Ended");
  clock_.advance(std::chrono::hours(2));
  work();
  EXPECT_THAT(metrics(), HasSubstr("ceems_mail_dry_run_people 1\n"));
  EXPECT_THAT(metrics(), HasSubstr("ceems_mail_total{state=\"dry\"} 1\n"));
  clock_.advance(std::chrono::hours(24 * 30));
  restart();
  put(ended("8"));
  work();
  ASSERT_EQ(transport_.sent.size(), 2U);
  EXPECT_THAT(field(transport_.sent[1].message, "Subject"), HasSubstr("hpc-a job 8 relax"));
  options_.mode = Mode::kDryRun;
  restart();
  put(ended("9"));
  work();
  ASSERT_EQ(transport_.sent.size(), 3U);
  EXPECT_EQ(field(transport_.sent[2].message, "Subject"), "Slurm Job_id=9 Ended");
}

TEST_F(SenderTest, HeedsWhatUsersDoNotWant) {
  auto outbox = db_->open_outbox();
  ASSERT_TRUE(outbox);
  ASSERT_TRUE((*outbox)->mute("ada", "time-limit", kNow + kHour));
  put(ended("7"));
  work();
  ASSERT_EQ(transport_.sent.size(), 1U);
  EXPECT_EQ(field(transport_.sent[0].message, "Subject"), "hpc-a job 7 relax: COMPLETED, 1.5 kWh");
  ASSERT_TRUE((*outbox)->mute("ada", "*", kNow + kHour));
  put(ended("8"));
  work();
  ASSERT_EQ(transport_.sent.size(), 2U);
  EXPECT_EQ(field(transport_.sent[1].message, "Subject"), "Slurm Job_id=8 Ended");
}

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
  clock_.advance(std::chrono::hours(1));
  work();
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
  EXPECT_EQ(transport_.tries, 0) << "the last reports of the month come first";
  clock_.advance(std::chrono::hours(36));
  work();
  ASSERT_EQ(transport_.sent.size(), 2U);
  EXPECT_THAT(transport_.sent[0].to, ElementsAre("ada@example.org"));
  EXPECT_THAT(transport_.sent[1].to, ElementsAre("bob@example.org"));
  EXPECT_EQ(field(transport_.sent[0].message, "Subject"), "Month 2025-12: 41.3 kWh");
  EXPECT_EQ(field(transport_.sent[0].message, "List-Unsubscribe"),
            "<https://x.org/ada/monthly-digest>");
  EXPECT_THAT(reports_.asked, ElementsAre("ada 2025-12 -", "bob 2025-12 -"));
  work();
  restart();
  work();
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
  clock_.advance(std::chrono::milliseconds(100));
  work();
  EXPECT_EQ(transport_.sent.size(), 61U);
}

TEST_F(SenderTest, SendsNoDigestLate) {
  options_.monthly = Mode::kEnabled;
  clock_.advance(std::chrono::hours(24 * 11));
  restart();
  work();
  EXPECT_EQ(reports_.listed, 0);
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
}

TEST_F(SenderTest, RemovesFilesThatItDoesNotTrust) {
  const auto add = [this](const std::string& name, const std::string& text) {
    std::ofstream(spool_.path().string() + "/" + name) << text;
  };
  add("1-a.mail", "{}");
  add("2-a.mail", std::string(kMaxSpoolFile + 1, 'x'));
  add("3-a.mail", to_text({.subject = "x", .recipient = "-oQ/tmp@x.org"}));
  add("4-a.mail.part", "unfinished");
  std::filesystem::create_symlink("/etc/passwd", spool_.path().string() + "/5-a.mail");
  add("6-a.mail", to_text({.subject = "x", .recipient = "ada"}));
  if (::geteuid() == 0) {
    add("7-a.mail", to_text({.subject = "forged", .recipient = "ada"}));
    ASSERT_EQ(::chown((spool_.path().string() + "/7-a.mail").c_str(), 12345, 12345), 0);
  }
  work();
  ASSERT_EQ(transport_.sent.size(), 1U);
  EXPECT_EQ(field(transport_.sent[0].message, "Subject"), "x");
  EXPECT_EQ(files(), 1U) << "only the unfinished one";
}

TEST_F(SenderTest, WorksWithoutSpool) {
  options_.spool = "/nonexistent";
  restart();
  work();
  EXPECT_EQ(transport_.tries, 0);
}

}  // namespace
}  // namespace ceems::mail
