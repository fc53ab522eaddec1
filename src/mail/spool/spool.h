#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::mail {

/// Where ceems_mail puts mails for the API server.
inline constexpr std::string_view kDefaultSpool = "/var/spool/ceems/mail";
inline constexpr std::size_t kMaxSpoolFile = std::size_t{256} << 10U;

/// A mail that slurmctld has asked for. Texts are untrusted: users choose names and recipients.
struct SpoolMail {
  std::string subject = {}, recipient = {}, body = {};
  std::map<std::string, std::string, std::less<>> job = {};  ///< the variables SLURM_* of slurmctld
  std::int64_t at_ms = 0;                                    ///< when it was asked for

  [[nodiscard]] std::string variable(std::string_view name) const;  ///< "" if it is not there
};

/// The content of a file in the spool.
std::string to_text(const SpoolMail& mail);
/// kParse for anything else.
Result<SpoolMail> parse_spool_mail(std::string_view text);

/// Puts the mail into a new file of the directory, which readers see complete or not at all. The
/// name begins with the time, so that names sort by age. Passes on errors of the system.
Result<> write_spool_mail(const std::string& directory, const SpoolMail& mail);

/// Whether this is the name of a complete file.
bool is_spool_name(std::string_view name);

}  // namespace ceems::mail
