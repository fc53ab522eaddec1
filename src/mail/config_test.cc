#include "mail/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::mail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Options> read(const std::string& text) {
  return read_options(config::parse_yaml(text, "c.yml").value(), "/etc/ceems");
}

TEST(MailConfig, IsDisabledByDefault) {
  const auto options = read("{}");
  ASSERT_TRUE(options);
  EXPECT_EQ(options->mode, Mode::kDisabled);
  EXPECT_EQ(options->monthly, Mode::kDisabled);
  EXPECT_EQ(options->spool, "/var/spool/ceems/mail");
  EXPECT_EQ(options->dry_run_days, 30);
  EXPECT_EQ(options->retention, std::chrono::days(400));
  EXPECT_EQ(options->max_wait, std::chrono::minutes(5));
  EXPECT_EQ(options->rate, 5);
  EXPECT_TRUE(options->smtp.starttls);
}

TEST(MailConfig, ReadsAllKeys) {
  const auto options = read(
      "mode: enabled\nspool: /s\nspool_users: [slurm, ada]\nfrom: ceems@example.org\n"
      "domain: example.org\nsmtp: {url: 'smtp://mx:587', username: u, password_file: p,"
      " starttls: false, ca_file: /ca.pem, timeout: 5s}\nlanguage: de\nrate: 0.5\nmax_wait: 20m\n"
      "digest_quiet: 1m\ndigest_max: 2m\nmonthly: dry_run\ndry_run_days: 0\n"
      "retention_period: 30d\n");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->mode, Mode::kEnabled);
  EXPECT_THAT(options->spool_users, ElementsAre("slurm", "ada"));
  EXPECT_EQ(options->password_file, "/etc/ceems/p");
  EXPECT_FALSE(options->smtp.starttls);
  EXPECT_EQ(options->smtp.timeout, std::chrono::seconds(5));
  EXPECT_EQ(options->language, "de");
  EXPECT_EQ(options->dry_run_days, 0);
  EXPECT_EQ(options->monthly, Mode::kDryRun);
  EXPECT_EQ(read("mode: dry_run\nfrom: a@b.org\nsendmail: /usr/sbin/sendmail")->mode,
            Mode::kDryRun);
}

TEST(MailConfig, RefusesMistakesWithTheirLine) {
  const std::string good = "from: a@b.org\nsendmail: /usr/sbin/sendmail\n";
  for (const auto& [text, message] : {std::pair<std::string, std::string>{
                                          "mode: enabled\nfrom: a@b.org", "needs smtp or sendmail"},
                                      {"mode: enabled\nsendmail: /s", "needs from"},
                                      {"mode: yes", "expected disabled, dry_run or enabled"},
                                      {"monthly: enabled", "c.yml:1: monthly: needs mode"},
                                      {good + "monthly: x", "c.yml:3: monthly: expected disabled"},
                                      {good + "mode: enabled\nmonthly: enabled", "needs domain"},
                                      {good + "moed: enabled", "c.yml:3: moed: unknown key"},
                                      {good + "smtp: {url: 'smtp://x'}", "exclude each other"},
                                      {good + "rate: 0", "c.yml:3: rate: expected more than 0"},
                                      {good + "spool: here", "expected an absolute path"},
                                      {"sendmail: sendmail", "expected an absolute path"},
                                      {"from: nobody", "expected a mail address"},
                                      {"domain: 'a b'", "expected the name of a domain"},
                                      {"language: tlh", "expected en, de or fr"},
                                      {"smtp: {url: 'http://x'}", "expected smtp://HOST"},
                                      {"smtp: {url: 'smtp://x/y'}", "expected smtp://HOST"},
                                      {"smtp: {url: 'smtp://u:p@x'}", "expected smtp://HOST"},
                                      {"smtp: {url: 'smtp://x', username: u}", "belong together"},
                                      {"smtp: {url: 'smtp://x', retries: 5}", "unknown key"},
                                      {"max_wait: 25h", "expected 0s to 24h"},
                                      {"digest_max: 1m", "expected digest_quiet to 24h"},
                                      {"digest_max: 1441m", "expected digest_quiet to 24h"},
                                      {"digest_quiet: 1441m", "digest_quiet: expected 0s to 24h"},
                                      {"dry_run_days: -1", "expected 0 to 365"},
                                      {good + "budgets: yes", "expected disabled, dry_run or"},
                                      {"mode: dry_run\nbudgets: enabled", "budgets: needs domain"},
                                      {"domain: x.org\nbudgets: dry_run", "budgets: needs mode"},
                                      {"retention_period: 1h", "must be a day or more"}}) {
    const auto options = read(text);
    ASSERT_FALSE(options) << text;
    EXPECT_THAT(options.error().message, HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace ceems::mail
