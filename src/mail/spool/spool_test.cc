#include "mail/spool/spool.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <string>
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

/// Sets how long a file may become, for as long as it lives.
class LongestFile {
 public:
  explicit LongestFile(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LongestFile() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  LongestFile(const LongestFile&) = delete;
  LongestFile& operator=(const LongestFile&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(Spool, LeavesNothingOfAMailThatDoesNotFit) {
  const testing::TempDir directory;
  const auto written = [&] {
    const LongestFile limit(20);  // which is written, before the rest fails
    return write_spool_mail(directory.path(), some_mail());
  }();
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("write " + directory.path().string()));
  EXPECT_THAT(written.error().message, HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Spool, WritesWhatTheDocumentationShows) {
  EXPECT_EQ(to_text(some_mail()),
            R"({"v":1,"at_ms":1767225600123,"subject":"Slurm Job_id=7 Name=x\r\nBcc: eve Ended",)"
            R"("recipient":"ada@example.org","body":"two\nlines\u001b",)"
            R"("job":{"SLURM_JOB_ID":"7","SLURM_JOB_NAME":"\"<b>�"}})");
  const testing::TempDir directory;
  ASSERT_TRUE(write_spool_mail(directory.path(), some_mail()));
  const std::filesystem::path file = *std::filesystem::directory_iterator(directory.path());
  EXPECT_EQ(file.filename().string().size(), 15 + 1 + 2 * 8 + std::string(".mail").size());
}

TEST(Spool, TakesWhatItsLimitsAllow) {
  const auto of_size = [](std::size_t size) {
    std::string text = "{\"recipient\":\"a\"}";
    return text.append(size - text.size(), ' ');
  };
  EXPECT_TRUE(parse_spool_mail(of_size(kMaxSpoolFile)));
  EXPECT_FALSE(parse_spool_mail(of_size(kMaxSpoolFile + 1)));
  EXPECT_EQ(parse_spool_mail("{\"recipient\":\"a\"}").value().at_ms, 0);
  EXPECT_EQ(parse_spool_mail("{\"recipient\":\"a\",\"at_ms\":0}").value().at_ms, 0);
  EXPECT_FALSE(parse_spool_mail("{\"recipient\":\"a\",\"at_ms\":1.5}"));
  const auto nested = [](std::size_t depth) {  // with the mail and the member itself
    return "{\"recipient\":\"a\",\"new\":" + std::string(depth - 1, '[') +
           std::string(depth - 1, ']') + "}";
  };
  EXPECT_TRUE(parse_spool_mail(nested(32)));
  EXPECT_FALSE(parse_spool_mail(nested(33)));
  EXPECT_FALSE(parse_spool_mail("{\"recipient\":\"a\"} x"));
}

TEST(Spool, KnowsItsNames) {
  for (const char* name : {"09-af.mail", "0.mail", "9.mail", "a.mail", "f.mail", "-.mail"}) {
    EXPECT_TRUE(is_spool_name(name)) << name;
  }
  for (const char* name : {"/.mail", ":.mail", "`.mail", "g.mail", "A.mail", ",.mail", "09-af"}) {
    EXPECT_FALSE(is_spool_name(name)) << name;
  }
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
