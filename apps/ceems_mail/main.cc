// ceems_mail: the MailProg of slurmctld. Puts each mail into the spool and runs nothing, so that
// slurmctld is never delayed; the API server sends it (docs/mail.md).

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "config/flags.h"
#include "mail/spool/spool.h"

namespace {

namespace mail = ceems::mail;

constexpr std::string_view kDescription =
    "Takes mails of slurmctld (MailProg in slurm.conf) and puts them into a directory, from which "
    "the CEEMS API server sends them: mails about ended jobs with a report of the job, others "
    "unchanged. Runs no other program.";

constexpr std::size_t kMaxText = 4096;
constexpr std::size_t kMaxBody = std::size_t{64} << 10U;
constexpr int kBodyWaitMs = 50;

/// The variables that slurmctld sets (MailProg in slurm.conf(5)) and that a mail needs.
constexpr std::array kVariables{
    "SLURM_ARRAY_JOB_ID",  "SLURM_ARRAY_TASK_COUNT",  "SLURM_ARRAY_TASK_ID",
    "SLURM_CLUSTER_NAME",  "SLURM_JOB_EXIT_CODE_MAX", "SLURM_JOB_ID",
    "SLURM_JOB_MAIL_TYPE", "SLURM_JOB_NAME",          "SLURM_JOB_PARTITION",
    "SLURM_JOB_RUN_TIME",  "SLURM_JOB_STATE",         "SLURM_JOB_USER"};

/// What comes on standard input at once; slurmctld sends nothing.
std::string read_body() {
  struct stat input{};
  if (::fstat(STDIN_FILENO, &input) != 0 || !(S_ISREG(input.st_mode) || S_ISFIFO(input.st_mode))) {
    return {};
  }
  std::string body;
  std::array<char, 4096> part{};
  while (body.size() < kMaxBody) {
    pollfd ready{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kBodyWaitMs) <= 0) {
      break;
    }
    const ssize_t count = ::read(STDIN_FILENO, part.data(), part.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      break;
    }
    body.append(part.data(), static_cast<std::size_t>(count));
  }
  body.resize(std::min(body.size(), kMaxBody));
  return body;
}

int run(int argc, const char* const* argv) {
  std::string subject;
  std::vector<std::string> recipients;
  const char* const from_environment = std::getenv("CEEMS_MAIL_SPOOL");
  std::string spool(from_environment == nullptr ? mail::kDefaultSpool : from_environment);
  ceems::config::FlagSet flags("ceems_mail", std::string(kDescription));
  flags.positionals("RECIPIENT", recipients, "Name or address that the mail is for.");
  flags.add("subject", subject, {.help = "Subject of the mail.", .letter = 's'});
  flags.add("spool", spool,
            {.help = "Directory for the mails. The variable CEEMS_MAIL_SPOOL sets it, too.",
             .placeholder = "DIRECTORY"});
  const auto outcome = flags.parse(argc, argv);
  if (outcome.exit) {
    fmt::print(*outcome.exit == 0 ? stdout : stderr, "{}", outcome.text);
    return *outcome.exit;
  }
  if (recipients.size() != 1 || recipients.front().empty()) {
    fmt::print(stderr, "ceems_mail: error: expected one recipient\n");
    return 1;
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  mail::SpoolMail job{.subject = subject.substr(0, kMaxText),
                      .recipient = recipients.front().substr(0, kMaxText),
                      .body = read_body(),
                      .at_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count()};
  for (const char* name : kVariables) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
      job.job[name] = std::string(value).substr(0, kMaxText);
    }
  }
  if (const auto written = mail::write_spool_mail(spool, job); !written) {
    fmt::print(stderr, "ceems_mail: error: {}\n", written.error().message);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs("ceems_mail: error: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return 1;
  }
}
