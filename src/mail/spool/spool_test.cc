#include "mail/spool/spool.h"

#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/file.h"
#include "testing/temp_dir.h"

namespace ceems::mail {
namespace {

using ::testing::HasSubstr;

SpoolMail some_mail() {
  return {.subject = "Slurm Job_id=7 Name=x\r\nBcc: eve Ended",
          .recipient = "ada@example.org",
          .body = "two\nlines\x1b",
          .job = {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NAME", "\"<b>\xff"}},
          .at_ms = 1767225600123};
}

TEST(Spool, GivesBackWhatWasPutIntoIt) {
  const testing::TempDir directory;
  ASSERT_TRUE(write_spool_mail(directory.path(), some_mail()));
  ASSERT_TRUE(write_spool_mail(directory.path(), some_mail()));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    names.push_back(entry.path().filename());
    EXPECT_TRUE(is_spool_name(names.back())) << names.back();
    EXPECT_THAT(names.back(), HasSubstr("001767225600123-"));
    const auto text = os::read_regular_file(entry.path(), kMaxSpoolFile);
    ASSERT_TRUE(text);
    const auto mail = parse_spool_mail(*text);
    ASSERT_TRUE(mail);
    EXPECT_EQ(mail->subject, some_mail().subject);
    EXPECT_EQ(mail->recipient, "ada@example.org");
    EXPECT_EQ(mail->body, "two\nlines\x1b");
    EXPECT_EQ(mail->at_ms, 1767225600123);
    EXPECT_EQ(mail->variable("SLURM_JOB_ID"), "7");
    EXPECT_EQ(mail->variable("SLURM_JOB_NAME"), "\"<b>\uFFFD");
  }
  EXPECT_EQ(names.size(), 2U);
}

TEST(Spool, SaysWhyItCannotWrite) {
  const auto written = write_spool_mail("/nonexistent", some_mail());
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("/nonexistent/001767225600123-"));
  EXPECT_THAT(written.error().message, HasSubstr("No such file or directory"));
}

TEST(Spool, RefusesOtherFiles) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string("{\"recipient\":\"\"}"),
        std::string("{\"recipient\":5}"), std::string("{\"recipient\":\"a\",\"at_ms\":-1}"),
        std::string("{\"recipient\":\"a\",\"job\":{\"x\":1}}"),
        std::string("{\"recipient\":\"a\"}}"),
        "{\"recipient\":\"" + std::string(kMaxSpoolFile, 'a') + "\"}"}) {
    EXPECT_FALSE(parse_spool_mail(text)) << text.substr(0, 60);
  }
  EXPECT_TRUE(parse_spool_mail("{\"recipient\":\"a\",\"new\":[{}]}"));
  for (const char* name : {".mail.part", "../x.mail", "x.mail", "1.mail.part", "README"}) {
    EXPECT_FALSE(is_spool_name(name)) << name;
  }
}

}  // namespace
}  // namespace ceems::mail
