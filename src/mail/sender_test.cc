#include "mail/sender.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "crypto/base64.h"
#include "mail/fake_sender.h"

namespace ceems::mail {
namespace {

using store::kHour;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
  begun.job["SLURM_JOB_MAIL_TYPE"] = "Began";
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

TEST_F(SenderTest, LogsWhyAMailIsPassedOn) {
  const auto logged = [this](const SpoolMail& mail) {
    put(mail);
    ::testing::internal::CaptureStderr();
    work();
    return ::testing::internal::GetCapturedStderr();
  };
  SpoolMail requeued = ended("7");
  requeued.job["SLURM_JOB_MAIL_TYPE"] = "Requeued";
  EXPECT_THAT(logged(requeued), HasSubstr("a mail of SLURM is passed on unchanged"));
  EXPECT_THAT(logged(requeued), HasSubstr("job=7 user=ada why=\"its type is 'Requeued'\""));
  SpoolMail cancelled = ended("8");
  cancelled.job["SLURM_JOB_STATE"] = "CANCELLED";
  cancelled.job["SLURM_JOB_RUN_TIME"] = "00:00:00";
  EXPECT_THAT(logged(cancelled), HasSubstr("why=\"the job never ran\""));
  EXPECT_THAT(logged(ended("9")), Not(HasSubstr("passed on"))) << "a report is sent";
  EXPECT_EQ(transport_.sent.size(), 4U);
  options_.dry_run_days = 30;
  restart();
  EXPECT_THAT(logged(ended("10")), HasSubstr("why=\"dry run\""));
  options_.dry_run_days = 0;
  restart();
  ASSERT_TRUE(db_->open_outbox().value()->mute("ada", "*", kNow + kHour));
  EXPECT_THAT(logged(ended("11")), HasSubstr("why=\"the user wants no reports\""));
}

TEST_F(SenderTest, WaitsForTheReportButNotForEver) {
  reports_.known.reset();
  put(ended("7"));
  work();
  clock_.advance(std::chrono::minutes(4));
  work();
  EXPECT_EQ(transport_.tries, 0);
  reports_.known = KnownReport{};  // nothing says that it is final
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

/// The first encoded word of the subject.
std::string subject_of(const std::string& message) {
  const std::string word = field(message, "Subject");
  const std::size_t begin = std::string_view("=?UTF-8?B?").size();
  return word.size() < begin
             ? word
             : crypto::base64_decode(word.substr(begin, word.rfind("?=") - begin)).value_or("");
}

/// The one mail about an array, with the state of its last task.
SpoolMail summary(SpoolMail mail, const std::string& tasks) {
  mail.subject = "Slurm Array Summary Job_id=9999_* (9999) Name=relax Ended, Mixed, ExitCode [0-1]";
  mail.job["SLURM_ARRAY_TASK_COUNT"] = tasks;
  return mail;
}

TEST_F(SenderTest, SumsAnArrayInItsSummary) {
  for (int i = 0; i < 20; ++i) {
    reports_.tasks.push_back({.job = std::to_string(1000 + i),
                              .state = i == 5 ? "FAILED" : "COMPLETED",
                              .ran = true,
                              .ended = i < 19});
  }
  put(summary(ended("1019", "9999"), "20"));
  work();
  EXPECT_EQ(transport_.tries, 0) << "one is not in the database yet";
  reports_.tasks.back().ended = true;
  clock_.advance(std::chrono::seconds(15));
  work();
  ASSERT_EQ(transport_.sent.size(), 1U);
  EXPECT_THAT(reports_.asked.back(), "hpc-a ada 1005") << "the one that failed";
  reports_.worst = "1003";
  put(summary(ended("1018", "9999"), "20"));
  work();
  EXPECT_THAT(reports_.asked.back(), "hpc-a ada 1003") << "the worst advice";
  ASSERT_EQ(transport_.sent.size(), 2U);
  EXPECT_THAT(subject_of(transport_.sent[1].message),
              HasSubstr("hpc-a array 9999 relax: 20 tasks (19 CO"));
}

TEST_F(SenderTest, SumsTheParts) {
  for (int i = 0; i < 3; ++i) {
    reports_.parts.push_back({.job = std::to_string(8200 + i),
                              .state = i == 2 ? "OUT_OF_MEMORY" : "COMPLETED",
                              .ran = true,
                              .ended = i < 2});
  }
  put(ended("8200"));
  work();
  EXPECT_EQ(transport_.tries, 0) << "one part is not in the database yet";
  reports_.parts.back().ended = true;
  clock_.advance(std::chrono::seconds(15));
  work();
  ASSERT_EQ(transport_.sent.size(), 1U);
  EXPECT_THAT(reports_.asked.back(), "hpc-a ada 8202") << "the one that did not end well";
  EXPECT_THAT(subject_of(transport_.sent[0].message),
              HasSubstr("heterogeneous job 8200 relax: 3 p"));
}

TEST_F(SenderTest, KeepsTheSummaryOfAnArrayThatNeverRan) {
  const SpoolMail mail = summary(ended("9999", "9999"), "20");
  for (const bool known : {false, true}) {
    reports_.tasks.assign(known ? 1 : 0, {.job = "9999", .state = "CANCELLED", .ended = true});
    put(mail);
    work();
    clock_.advance(std::chrono::minutes(5));
    work();
    ASSERT_EQ(transport_.sent.size(), known ? 2U : 1U);
    EXPECT_THAT(subject_of(transport_.sent.back().message),
                HasSubstr("Slurm Array Summary Job_id=9999_*"));
    EXPECT_THAT(transport_.sent.back().message, Not(HasSubstr("List-Unsubscribe")));
  }
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
