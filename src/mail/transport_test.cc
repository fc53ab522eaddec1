#include "mail/transport.h"

#include <sys/stat.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mail/fake_smtp.h"
#include "os/file.h"
#include "testing/temp_dir.h"

namespace ceems::mail {
namespace {

using net::MailOutcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SmtpTest : public ::testing::Test {
 protected:
  MailOutcome send(const std::string& message = "Subject: x\r\n\r\nHello\r\n") {
    Options options;
    options.smtp.url = server_.url();
    options.smtp.starttls = starttls_;
    const auto answer = make_transport(options)->send(
        "ceems@example.org", {"ada@example.org", "bob@example.org"}, message,
        [this] {
          ++handed_;
          return allowed_;
        },
        {});
    problem_ = answer.problem;
    return answer.outcome;
  }
  FakeSmtp server_;
  bool starttls_ = false;
  bool allowed_ = true;
  int handed_ = 0;
  std::string problem_;
};

TEST_F(SmtpTest, DeliversTheWholeMessage) {
  std::string message = "Subject: x\r\n\r\n.\r\n..two\r\n";
  for (int i = 0; i < 20'000; ++i) {
    message += "0123456789\r\n";
  }
  EXPECT_EQ(send(message), MailOutcome::kSent) << problem_;
  ASSERT_EQ(server_.mails().size(), 1U);
  EXPECT_EQ(server_.mails()[0].message, message);
  EXPECT_THAT(server_.mails()[0].from, HasSubstr("<ceems@example.org>"));
  EXPECT_THAT(server_.mails()[0].to, ElementsAre("<ada@example.org>", "<bob@example.org>"));
  EXPECT_EQ(handed_, 1);
}

TEST_F(SmtpTest, TellsWhatMayBeTriedAgain) {
  server_.answer("451 later", "250 ok");
  EXPECT_EQ(send(), MailOutcome::kTemporary);
  server_.answer("550 unknown user", "250 ok");
  EXPECT_EQ(send(), MailOutcome::kRefused);
  EXPECT_THAT(problem_, HasSubstr("550"));
  EXPECT_EQ(handed_, 0);
  server_.answer("250 ok", "452 full");
  EXPECT_EQ(send(), MailOutcome::kTemporary);
  server_.answer("250 ok", "554 spam");
  EXPECT_EQ(send(), MailOutcome::kRefused);
  EXPECT_EQ(handed_, 2);
  EXPECT_TRUE(server_.mails().empty());
}

TEST_F(SmtpTest, DoesNotKnowWhatBecameOfAMailWithoutAnswer) {
  server_.answer("250 ok", "");
  EXPECT_EQ(send(), MailOutcome::kUnknown);
  EXPECT_EQ(server_.mails().size(), 1U);
}

TEST_F(SmtpTest, WithdrawsAMailThatMayNotBeHandedOver) {
  allowed_ = false;
  EXPECT_EQ(send(), MailOutcome::kTemporary);
  EXPECT_EQ(handed_, 1);
  EXPECT_TRUE(server_.mails().empty());
}

TEST_F(SmtpTest, RefusesServersWithoutTlsUnlessAllowed) {
  starttls_ = true;
  EXPECT_EQ(send(), MailOutcome::kTemporary);
  EXPECT_TRUE(server_.mails().empty());
  EXPECT_EQ(handed_, 0);
}

TEST(Smtp, CannotReachNobody) {
  Options options;
  options.smtp.url = "smtp://127.0.0.1:1";
  const auto answer =
      make_transport(options)->send("a@b.org", {"c@d.org"}, "x", [] { return true; }, {});
  EXPECT_EQ(answer.outcome, MailOutcome::kTemporary);
}

class SendmailTest : public ::testing::Test {
 protected:
  MailOutcome send(const std::string& script) {
    const std::string path = directory_.path().string() + "/sendmail";
    {
      std::ofstream(path) << "#!/bin/sh\n" << script;
    }
    EXPECT_EQ(::chmod(path.c_str(), 0755), 0);
    Options options;
    options.sendmail = path;
    return make_transport(options)
        ->send("ceems@example.org", {"a$(id)@example.org"}, "Subject: x\r\n\r\n.\r\nend\r\n",
               [this] { return allowed_; }, {})
        .outcome;
  }
  std::string file(const std::string& name) {
    return os::read_regular_file(directory_.path().string() + "/" + name, 10'000)
        .value_or("(none)");
  }
  testing::TempDir directory_;
  bool allowed_ = true;
};

TEST_F(SendmailTest, StartsTheProgramWithoutAShell) {
  const std::string at = directory_.path().string();
  EXPECT_EQ(send("cat >" + at + "/in\nprintf '%s\\n' \"$@\" >" + at + "/arguments\nenv >" + at +
                 "/environment\n"),
            MailOutcome::kSent);
  EXPECT_EQ(file("in"), "Subject: x\r\n\r\n.\r\nend\r\n");
  EXPECT_EQ(file("arguments"), "-i\n-f\nceems@example.org\n--\na$(id)@example.org\n");
  EXPECT_THAT(file("environment"), HasSubstr("PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"));
  EXPECT_THAT(file("environment"), ::testing::Not(HasSubstr("HOME=")));
}

TEST_F(SendmailTest, KnowsItsStatuses) {
  EXPECT_EQ(send("cat >/dev/null; exit 75\n"), MailOutcome::kTemporary);
  EXPECT_EQ(send("cat >/dev/null; exit 67\n"), MailOutcome::kRefused);
  EXPECT_EQ(send("cat >/dev/null; exit 1\n"), MailOutcome::kTemporary);
  EXPECT_EQ(send("cat >/dev/null; kill -9 $$\n"), MailOutcome::kUnknown);
  allowed_ = false;
  EXPECT_EQ(send("touch " + directory_.path().string() + "/ran\n"), MailOutcome::kTemporary);
  EXPECT_EQ(file("ran"), "(none)");
}

}  // namespace
}  // namespace ceems::mail
