#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"
#include "mail/spool/spool.h"
#include "net/client/smtp.h"

namespace ceems::mail {

enum class Mode : std::uint8_t {
  kDisabled,
  kDryRun,  ///< mails of slurmctld go on unchanged; reports are only counted
  kEnabled,
};

/// `ceems_api_server.mail` (docs/mail.md).
struct Options {
  Mode mode = Mode::kDisabled;
  std::string spool = std::string(kDefaultSpool);
  /// Whose files in the spool are taken: names of users of this host.
  std::vector<std::string> spool_users = {"slurm", "root"};
  std::string from = {};    ///< address
  std::string domain = {};  ///< of recipients that are only names
  net::SmtpOptions smtp = {};
  std::string password_file = {};
  std::string sendmail = {};  ///< absolute path; instead of smtp
  std::string language = "en";
  double rate = 5;  ///< mails per second
  std::chrono::milliseconds max_wait{std::chrono::minutes(5)};
  std::chrono::milliseconds digest_quiet{std::chrono::minutes(10)};
  std::chrono::milliseconds digest_max{std::chrono::hours(1)};
  /// Digests of the month to all users with usage, unsolicited.
  Mode monthly = Mode::kDisabled;
  /// Mails to those who lead a project, when a share of a budget of it has passed.
  Mode budgets = Mode::kDisabled;
  std::int64_t dry_run_days = 30;  ///< after mails of a kind were first enabled
  std::chrono::milliseconds retention{std::chrono::days(400)};
};

/// Reads the block. An unknown key, or enabled mails without a way to send them, is an error with
/// file and line.
Result<Options> read_options(const config::Node& node, const std::string& directory);

}  // namespace ceems::mail
