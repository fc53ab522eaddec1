#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mail/spool/spool.h"

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

}  // namespace ceems::mail
