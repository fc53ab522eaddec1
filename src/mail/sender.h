#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "mail/config.h"
#include "mail/letter.h"
#include "mail/spool_intake.h"
#include "mail/transport.h"
#include "metrics/registry.h"
#include "report/digest.h"
#include "report/report.h"
#include "store/outbox.h"

namespace ceems::mail {

struct KnownReport {
  report::Report report = {};
  bool final = false;  ///< false: more may become known
};

/// A task of an array, or a part of a heterogeneous job.
struct ArrayTask {
  std::string job = {};  ///< its id
  std::string state = {};
  bool ran = false, ended = false;
};

/// A month that has ended.
struct EndedMonth {
  std::string name = {};  ///< "2026-11"
  std::int64_t ended_ms = 0;
};

/// What the server knows of jobs and months. Called by one thread.
class ReportSource {
 public:
  virtual ~ReportSource() = default;
  /// The report of the last run of a job of this user, as the user may see it; nothing if no run is
  /// known that ended after that time (epoch ms).
  virtual Result<std::optional<KnownReport>> report(const std::string& cluster_id,
                                                    const std::string& user,
                                                    const std::string& job,
                                                    std::int64_t ended_after_ms) = 0;
  /// Adds the energy of jobs of this user to `sums`.
  virtual Result<> add_energy(const std::string& cluster_id,
                              const std::string& user,
                              const std::vector<std::string>& jobs,
                              ArraySums& sums) = 0;
  /// The jobs of this user whose id, as SLURM shows it, begins with `prefix`, each with its last
  /// run: "7100_" for the tasks of an array, "8200+" for the parts of a heterogeneous job.
  virtual Result<std::vector<ArrayTask>> tasks_of(const std::string& cluster_id,
                                                  const std::string& user,
                                                  const std::string& prefix) = 0;
  /// Which of these jobs of the user most needs a look: by its advice. "" if none has any.
  virtual Result<std::string> worst_of(const std::string& cluster_id,
                                       const std::string& user,
                                       const std::vector<std::string>& jobs) = 0;
  /// The last month that has ended.
  [[nodiscard]] virtual EndedMonth last_month() const = 0;
  /// Who used something in a month, each once.
  virtual Result<std::vector<std::string>> users_of(const std::string& month) = 0;
  /// The month of this user, without these rules; nothing if nothing was used.
  virtual Result<std::optional<report::Digest>> digest(const std::string& user,
                                                       const std::string& month,
                                                       const std::vector<std::string>& without) = 0;
  /// Budgets of which a share has passed: each once, with the highest of these shares.
  virtual Result<std::vector<PassedBudget>> passed_budgets() = 0;
};

struct SenderSetup {
  Options options = {};
  std::vector<MailCluster> clusters = {};  ///< those that SLURM manages
  std::string help_url = {};
  std::function<std::string(const std::string& user, const std::string& rule)> mute_url = {};
  /// Opens the outbox; called until it succeeds.
  std::function<Result<std::unique_ptr<store::Outbox>>()> open_outbox = {};
};

/// Takes mails from the spool into the outbox, and sends what is due. State is only in the
/// database, so nothing is sent twice or lost when the program is killed (docs/mail.md). Used by
/// one thread.
class Sender {
 public:
  /// All outlive the sender.
  Sender(SenderSetup setup,
         ReportSource& reports,
         Transport& transport,
         metrics::Registry& registry,
         const Clock& clock);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// Works until a stop.
  void run(const std::stop_token& stop);
  /// One round: everything in the spool, and everything that is due.
  Result<> work(const std::stop_token& stop);

 private:
  struct Counters;
  using Mail = store::OutgoingMail;

  Result<> open();
  Result<> send_due(const std::stop_token& stop);
  Result<> send_plain(const Mail& mail, const std::stop_token& stop);
  Result<> send_job(const Mail& mail, const std::stop_token& stop);
  /// The one mail about all tasks of an array.
  Result<> send_summary(const Mail& mail, const SpoolMail& original, const std::stop_token& stop);
  /// The known tasks of an array or parts of a heterogeneous job.
  struct Group {
    ArraySums sums = {};
    std::vector<std::string> jobs = {};
    std::string other = {};  ///< one that did not end well, or the job itself
    bool ran = false;        ///< at least one
    bool complete = false;   ///< all known ones have ended
  };
  /// `prefix`: see ReportSource::tasks_of().
  Group group_of(const JobNames& job, const std::string& prefix);
  Result<> send_group(const Mail& mail,
                      const SpoolMail& original,
                      const JobNames& job,
                      Group group,
                      bool complete,
                      const std::stop_token& stop);
  /// Until when a mail waits for what is not known yet.
  [[nodiscard]] std::int64_t last_wait_ms(const Mail& mail) const;
  void add_energy(const JobNames& job, const std::vector<std::string>& jobs, ArraySums& sums);
  Result<> send_original(const Mail& mail,
                         const SpoolMail& original,
                         std::string_view why,
                         const std::stop_token& stop);
  /// The report that stands for these jobs: that with the worst advice, else that of `otherwise`.
  std::optional<KnownReport> report_for(const JobNames& job,
                                        const std::vector<std::string>& jobs,
                                        const std::string& otherwise,
                                        std::int64_t ended_after_ms);
  Result<> send_digest(const std::string& digest, const std::stop_token& stop);
  Result<> queue_months();
  Result<> send_month(const Mail& mail, const std::stop_token& stop);
  Result<> queue_budgets();
  /// Fills `passed_`; the answer is valid until it is reset.
  Result<std::span<const PassedBudget>> look_at_budgets();
  Result<> send_budget(const Mail& mail, const std::stop_token& stop);
  /// Ends a mail that is unwanted or would be empty.
  Result<> drop(const Mail& mail, bool muted);
  /// `muted_by` is what the user mutes who does not want such mails; "" if they cannot be muted.
  Result<> deliver(const std::vector<Mail>& mails,
                   const Letter& letter,
                   std::string_view muted_by,
                   const std::stop_token& stop);
  Result<> note_outcome(const std::vector<Mail>& mails,
                        const std::vector<std::string>& ids,
                        const Letter& letter,
                        const net::MailAnswer& answer);
  Result<LetterOptions> letter_options(const std::string& user);
  void keep_rate(const std::stop_token& stop);
  Result<> keep_house();
  [[nodiscard]] bool dry() const;
  [[nodiscard]] bool months_are_dry() const;
  [[nodiscard]] bool budgets_are_dry() const;
  [[nodiscard]] bool is_dry(std::string_view kind) const;

  SenderSetup setup_;
  ReportSource& reports_;
  Transport& transport_;
  const Clock& clock_;
  std::unique_ptr<Counters> counters_;
  std::unique_ptr<store::Outbox> outbox_;
  SpoolIntake intake_;
  std::int64_t started_ms_ = 0, months_started_ms_ = 0, budgets_started_ms_ = 0;
  std::string queued_month_;  ///< whose digests are in the outbox
  /// The budgets, if this round has asked for them.
  std::optional<std::vector<PassedBudget>> passed_;
  std::int64_t next_cleaning_ms_ = 0, next_budgets_ms_ = 0;
  Clock::SteadyTime next_send_ = {};
  std::string last_problem_;
};

}  // namespace ceems::mail
