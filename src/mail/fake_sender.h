#pragma once

// The fixture of the tests of Sender, in both kinds of databases.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "base/strings.h"
#include "mail/sender.h"
#include "store/test_database.h"

namespace ceems::mail {

using store::kNow;

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
  Result<std::vector<ArrayTask>> tasks_of(const std::string& /*cluster_id*/,
                                          const std::string& /*user*/,
                                          const std::string& prefix) override {
    return prefix == "9999_" ? tasks : prefix == "8200+" ? parts : std::vector<ArrayTask>();
  }
  Result<std::string> worst_of(const std::string& /*cluster_id*/,
                               const std::string& /*user*/,
                               const std::vector<std::string>& jobs) override {
    const bool there = std::ranges::find(jobs, worst) != jobs.end();
    return there ? worst : std::string();
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
  std::vector<ArrayTask> tasks;  ///< of the array 9999
  std::vector<ArrayTask> parts;  ///< of the heterogeneous job 8200
  std::string worst;
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
inline std::string field(const std::string& message, const std::string& name) {
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
                    .clusters = {{.id = "hpc-a"}},
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
                           {"SLURM_JOB_MAIL_TYPE", "Ended"},
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

}  // namespace ceems::mail
