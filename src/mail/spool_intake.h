#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "mail/config.h"
#include "mail/spool/spool.h"
#include "metrics/registry.h"
#include "store/outbox.h"

namespace ceems::mail {

// What slurmctld's mails tell, by its variables (MailProg in slurm.conf(5)) and, where an old
// version does not set them, by the subject.

/// A cluster that SLURM manages.
struct MailCluster {
  std::string id = {};
  std::string slurm_name = {};  ///< that SLURM gives it; empty: the id
};

/// The id of the cluster of a mail; "" if it is none of these. A single cluster without a name of
/// its own has the mails of any cluster.
std::string cluster_of(const SpoolMail& mail, const std::vector<MailCluster>& clusters);
/// In what state the job ended: a word in upper case, as states of jobs are.
std::string state_of(const SpoolMail& mail);
/// Whether it is the one mail about all tasks of an array (sbatch --mail-type without ARRAY_TASKS).
bool is_array_summary(const SpoolMail& mail);
/// Whether the job ended without having run, for instance because it was cancelled.
bool never_ran(const SpoolMail& mail);
/// Why the mail does not tell that a job has ended; nothing if it does.
std::optional<std::string> not_an_end(const SpoolMail& mail);

// Kinds of mails in the outbox.
inline constexpr std::string_view kJobMail = "job";        ///< with the report of a job
inline constexpr std::string_view kPlainMail = "plain";    ///< as slurmctld wrote it
inline constexpr std::string_view kMonthMail = "month";    ///< with the digest of a month
inline constexpr std::string_view kBudgetMail = "budget";  ///< of a budget that is running out

/// Logs why a mail of slurmctld is sent as it is.
void log_passed_on(const SpoolMail& mail, std::string_view why);

/// Moves mails from the spool into the outbox. A file is removed when its mails are there, so
/// nothing is lost or taken twice when the program is killed. Used by one thread.
class SpoolIntake {
 public:
  /// All outlive the object. `queued` is raised by what is taken.
  SpoolIntake(const Options& options,
              const std::vector<MailCluster>& clusters,
              metrics::Registry& registry,
              metrics::Gauge& queued,
              const Clock& clock);

  /// Takes everything that is in the spool. In a dry run, reports are queued to be counted, and
  /// beside them the mails of slurmctld as they are. A spool that cannot be read is logged and no
  /// error, because what is queued can be sent.
  Result<> take(store::Outbox& outbox, bool dry, const std::stop_token& stop);

 private:
  using Mail = store::OutgoingMail;

  Result<bool> take_file(store::Outbox& outbox,
                         bool dry,
                         const std::string& name,
                         std::vector<Mail>& taken);
  /// Why no report is sent in place of the mail; "" if one is.
  Result<std::string> why_unchanged(store::Outbox& outbox, const SpoolMail& mail);
  Result<std::vector<Mail>> mails_of(store::Outbox& outbox,
                                     bool dry,
                                     const SpoolMail& mail,
                                     const std::string& id);

  const Options& options_;
  const std::vector<MailCluster>& clusters_;
  metrics::Family<metrics::Counter>& files_;
  metrics::Gauge& queued_;
  const Clock& clock_;
  std::set<unsigned> trusted_;  ///< owners of files
  bool reported_ = false;       ///< that the spool cannot be read
};

}  // namespace ceems::mail
