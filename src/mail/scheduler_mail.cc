#include "mail/scheduler_mail.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::mail {
namespace {

/// The types of mails about an end. Others are Began, Requeued, Invalid dependency,
/// StageOut/Teardown, Reached time limit and Reached 80% of time limit.
constexpr std::array<std::string_view, 2> kEnds{"Ended", "Failed"};

/// States of jobs that have not ended: of one that is queued anew, for instance each time that a
/// job of scrontab has run.
constexpr std::array<std::string_view, 13> kNotEnded{
    "PENDING",      "RUNNING",  "SUSPENDED", "CONFIGURING",  "REQUEUED",  "REQUEUE_FED",  "STOPPED",
    "REQUEUE_HOLD", "RESIZING", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "POWER_UP_NODE"};

/// The type of the mail: SLURM_JOB_MAIL_TYPE, else what the subject says behind the id and the
/// name, which the user chooses: "Slurm Job_id=7 Name=relax Ended, Run time 00:10:00, ...".
std::string type_of(const SpoolMail& mail) {
  if (std::string type = mail.variable("SLURM_JOB_MAIL_TYPE"); !type.empty()) {
    return type;
  }
  std::string_view rest = mail.subject;
  const std::size_t id = rest.find("Job_id=");
  if (!rest.starts_with("Slurm ") || id == std::string_view::npos) {
    return {};
  }
  rest.remove_prefix(std::min(rest.find(' ', id), rest.size()));
  if (rest.starts_with(" (")) {  // of a task of an array
    rest.remove_prefix(std::min(rest.find(' ', 1), rest.size()));
  }
  const std::string name = " Name=" + mail.variable("SLURM_JOB_NAME");
  if (rest.starts_with(name)) {
    rest.remove_prefix(name.size());
  }
  return std::string(trim(rest.substr(0, rest.find(','))));
}

}  // namespace

std::string state_of(const SpoolMail& mail) {
  std::string state = mail.variable("SLURM_JOB_STATE");
  if (state.empty()) {
    state = mail.variable("SLURM_JOB_MAIL_TYPE");
  }
  constexpr std::size_t kMaxState = 40;
  return state.empty() ? "ended" : state.substr(0, kMaxState);
}

std::string cluster_of(const SpoolMail& mail, const std::vector<MailCluster>& clusters) {
  const std::string name = mail.variable("SLURM_CLUSTER_NAME");
  const auto found = std::ranges::find_if(clusters, [&](const MailCluster& cluster) {
    return same_in_any_case(cluster.slurm_name.empty() ? cluster.id : cluster.slurm_name, name);
  });
  if (found != clusters.end()) {
    return found->id;
  }
  const bool any = clusters.size() == 1 && (clusters.front().slurm_name.empty() || name.empty());
  return any ? clusters.front().id : std::string();
}

bool is_array_summary(const SpoolMail& mail) {
  return mail.subject.starts_with("Slurm Array Summary ");
}

bool never_ran(const SpoolMail& mail) {
  const std::string time = mail.variable("SLURM_JOB_RUN_TIME");
  // SLURM gives a job that is cancelled while it waits a start, which is its end.
  return time.empty() || (time == "00:00:00" && state_of(mail) == "CANCELLED");
}

std::optional<std::string> not_an_end(const SpoolMail& mail) {
  const std::string type = type_of(mail);
  if (std::ranges::find(kEnds, type) == kEnds.end()) {
    return type.empty() ? "it does not say what happened"
                        : fmt::format("its type is '{}'", printable(type, 40));
  }
  const std::string state = mail.variable("SLURM_JOB_STATE");
  if (std::ranges::find(kNotEnded, state) != kNotEnded.end()) {
    return fmt::format("the job is {}", state);
  }
  if (never_ran(mail) && !is_array_summary(mail)) {
    return "the job never ran";
  }
  return std::nullopt;
}

}  // namespace ceems::mail
