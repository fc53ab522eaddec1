#include "mail/spool_intake.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/strings.h"
#include "mail/address.h"
#include "mail/letter.h"

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

constexpr std::size_t kFilesAtOnce = 500;
constexpr std::size_t kMaxIdDigits = 20;

/// The user ids of these names. Unknown names are skipped: SLURM may not be on this host.
std::set<unsigned> ids_of(const std::vector<std::string>& names) {
  std::set<unsigned> ids{::geteuid()};
  for (const std::string& name : names) {
    std::array<char, 4096> buffer{};
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
        found != nullptr) {
      ids.insert(found->pw_uid);
    }
  }
  return ids;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

/// The oldest files of the spool.
Result<std::vector<std::string>> names_in(const std::string& directory) {
  const std::unique_ptr<DIR, CloseDirectory> open(::opendir(directory.c_str()));
  if (!open) {
    return fail(errno_error(errno, fmt::format("read {}", directory)));
  }
  std::vector<std::string> names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): each stream is used by one thread
  while (const dirent* entry = ::readdir(open.get())) {
    if (is_spool_name(entry->d_name)) {
      names.emplace_back(entry->d_name);
    }
  }
  std::ranges::sort(names);
  names.resize(std::min(names.size(), kFilesAtOnce));
  return names;
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
  // SLURM gives a job that is cancelled while it waits, or whose deadline passes, a start, which is
  // its end.
  const std::string state = state_of(mail);
  return time.empty() || (time == "00:00:00" && (state == "CANCELLED" || state == "DEADLINE"));
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

void log_passed_on(const SpoolMail& mail, std::string_view why) {
  log::info("a mail of SLURM is passed on unchanged", {{"job", mail.variable("SLURM_JOB_ID")},
                                                       {"user", mail.variable("SLURM_JOB_USER")},
                                                       {"why", why}});
}

SpoolIntake::SpoolIntake(const Options& options,
                         const std::vector<MailCluster>& clusters,
                         metrics::Registry& registry,
                         metrics::Gauge& queued,
                         const Clock& clock)
    : options_(options),
      clusters_(clusters),
      files_(registry.counters(
          "ceems_mail_files_total", "Files of the spool, by what became of them.", {"state"})),
      queued_(queued),
      clock_(clock),
      trusted_(ids_of(options.spool_users)) {}

Result<std::string> SpoolIntake::why_unchanged(store::Outbox& outbox, const SpoolMail& mail) {
  const std::string user = mail.variable("SLURM_JOB_USER");
  if (auto reason = not_an_end(mail)) {
    return std::move(*reason);
  }
  if (cluster_of(mail, clusters_).empty()) {
    return fmt::format(
        "cluster '{}' is neither the id of a cluster nor its extra_config.slurm_cluster",
        printable(mail.variable("SLURM_CLUSTER_NAME"), 64));
  }
  if (user.empty() || !is_number(mail.variable("SLURM_JOB_ID"), kMaxIdDigits)) {
    return "SLURM_JOB_USER or SLURM_JOB_ID is missing";
  }
  CEEMS_TRY(muted, outbox.muted(user, clock_.now_ms()));
  return std::ranges::find(muted, kAllMails) == muted.end() ? "" : "the user wants no reports";
}

Result<std::vector<store::OutgoingMail>> SpoolIntake::mails_of(store::Outbox& outbox,
                                                               bool dry,
                                                               const SpoolMail& mail,
                                                               const std::string& id) {
  const std::string user = mail.variable("SLURM_JOB_USER");
  Mail plain{.id = id,
             .kind = std::string(kPlainMail),
             .username = user,
             .recipient = mail.recipient,
             .body = to_text(mail),
             .received_ms = clock_.now_ms(),
             .due_ms = clock_.now_ms()};
  CEEMS_TRY(why, why_unchanged(outbox, mail));
  if (!why.empty()) {
    log_passed_on(mail, why);
    return std::vector<Mail>{std::move(plain)};
  }
  Mail report = plain;
  report.kind = kJobMail;
  if (const std::string array = mail.variable("SLURM_ARRAY_JOB_ID");
      is_number(array, kMaxIdDigits) && !is_array_summary(mail)) {
    report.digest =
        fmt::format("{}\n{}\n{}\n{}", cluster_of(mail, clusters_), array, user, mail.recipient);
    report.due_ms += options_.digest_quiet.count();
  }
  if (!dry) {
    return std::vector<Mail>{std::move(report)};
  }
  // People get what they got before.
  log_passed_on(mail, "dry run");
  plain.id += ".plain";
  return std::vector<Mail>{std::move(report), std::move(plain)};
}

/// True if the file can be removed when its mails are in the outbox.
Result<bool> SpoolIntake::take_file(store::Outbox& outbox,
                                    bool dry,
                                    const std::string& name,
                                    std::vector<Mail>& taken) {
  const std::string path = options_.spool + "/" + name;
  const auto refuse = [&](std::string_view why) {
    log::warn("removed a file from the spool of mails", {{"file", path}, {"err", why}});
    files_.with({"refused"}).add();
    return true;
  };
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    const int cause = errno;
    if (cause == ELOOP) {
      return refuse("it is a link");
    }
    if (cause == ENOENT || cause == EACCES) {
      log::debug("skipped a file of the spool of mails", {{"file", path}});
      return false;
    }
    return fail(errno_error(cause, fmt::format("open {}", path)));
  }
  if (!S_ISREG(status.st_mode) || !trusted_.contains(status.st_uid)) {
    return refuse(fmt::format("it belongs to user {}, who is not in spool_users", status.st_uid));
  }
  if (std::cmp_greater(status.st_size, kMaxSpoolFile)) {
    return refuse("it is too large");
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  if (count < 0) {
    return fail(errno_error(errno, fmt::format("read {}", path)));
  }
  text.resize(static_cast<std::size_t>(count));
  const auto mail = parse_spool_mail(text);
  if (!mail) {
    return refuse(mail.error().message);
  }
  if (auto addresses = addresses_of(mail->recipient, options_.domain); !addresses) {
    return refuse(addresses.error().message);
  }
  CEEMS_TRY(mails, mails_of(outbox, dry, *mail, name));
  std::ranges::move(mails, std::back_inserter(taken));
  files_.with({"taken"}).add();
  return true;
}

Result<> SpoolIntake::take(store::Outbox& outbox, bool dry, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto names = names_in(options_.spool);
    if (!names) {
      if (!std::exchange(reported_, true)) {
        log::warn("cannot read the spool of mails", {{"err", names.error().message}});
      }
      return {};  // what is queued can be sent
    }
    reported_ = false;
    if (names->empty()) {
      return {};
    }
    std::vector<Mail> taken;
    std::vector<std::string> done;
    for (const std::string& name : *names) {
      CEEMS_TRY(removable, take_file(outbox, dry, name, taken));
      if (removable) {
        done.push_back(name);
      }
    }
    // A file that is still there after a kill is found in the outbox by its name.
    CEEMS_TRY(outbox.add(taken));
    queued_.add(static_cast<double>(taken.size()));  // until the end of the round
    bool removed = false;
    for (const std::string& name : done) {
      removed = ::unlink((options_.spool + "/" + name).c_str()) == 0 || removed;
    }
    if (!removed) {
      return done.empty() ? Result<>()
                          : fail(ErrorCode::kPermissionDenied, "cannot remove files from {}",
                                 options_.spool);
    }
  }
  return {};
}

}  // namespace ceems::mail
