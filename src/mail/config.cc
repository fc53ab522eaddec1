#include "mail/config.h"

#include <algorithm>
#include <array>

#include "advice/catalogue.h"
#include "config/section.h"
#include "mail/address.h"

namespace ceems::mail {
namespace {

constexpr std::array<std::string_view, 3> kModes{"disabled", "dry_run", "enabled"};

Result<> read_smtp(const config::Node& node, const std::string& directory, Options& options) {
  config::Section section(node);
  section.only({"url", "username", "password_file", "starttls", "ca_file", "timeout"})
      .text("url", options.smtp.url)
      .text("username", options.smtp.username)
      .file("password_file", options.password_file, directory)
      .boolean("starttls", options.smtp.starttls)
      .file("ca_file", options.smtp.ca_file, directory)
      .duration("timeout", options.smtp.timeout)
      .refuse(options.smtp.username.empty() != options.password_file.empty(), "username",
              "username and password_file belong together")
      .refuse(options.smtp.timeout < std::chrono::seconds(1), "timeout", "must be 1s or more");
  if (node.present()) {
    const auto checked = net::check_smtp(options.smtp);
    section.refuse(!checked, "url", checked ? "" : checked.error().message);
  }
  return section.done();
}

}  // namespace

Result<Options> read_options(const config::Node& node, const std::string& directory) {
  Options options;
  std::string mode(kModes.front());
  std::string monthly(kModes.front());
  std::string budgets(kModes.front());
  config::Section section(node);
  section
      .only({"mode", "spool", "spool_users", "from", "domain", "smtp", "sendmail", "language",
             "rate", "max_wait", "digest_quiet", "digest_max", "monthly", "budgets", "dry_run_days",
             "retention_period"})
      .text("mode", mode)
      .text("monthly", monthly)
      .text("budgets", budgets)
      .text("spool", options.spool)
      .list("spool_users", options.spool_users)
      .text("from", options.from)
      .text("domain", options.domain)
      .text("sendmail", options.sendmail)
      .text("language", options.language)
      .number("rate", options.rate)
      .duration("max_wait", options.max_wait)
      .duration("digest_quiet", options.digest_quiet)
      .duration("digest_max", options.digest_max)
      .integer("dry_run_days", options.dry_run_days)
      .duration("retention_period", options.retention);
  section.also(read_smtp(node["smtp"], directory, options));
  const auto* const found = std::ranges::find(kModes, mode);
  const auto* const found_monthly = std::ranges::find(kModes, monthly);
  const bool sends = found != kModes.begin();
  const bool sends_monthly = found_monthly != kModes.begin();
  const auto* const found_budgets = std::ranges::find(kModes, budgets);
  const bool sends_budgets = found_budgets != kModes.begin();
  const auto hours = std::chrono::hours(1);
  section.refuse(found == kModes.end(), "mode", "expected disabled, dry_run or enabled")
      .refuse(options.spool.empty() || options.spool.front() != '/', "spool",
              "expected an absolute path")
      .refuse(!options.sendmail.empty() && options.sendmail.front() != '/', "sendmail",
              "expected an absolute path")
      .refuse(!options.sendmail.empty() && !options.smtp.url.empty(), "sendmail",
              "smtp and sendmail exclude each other")
      .refuse(!options.from.empty() && !is_address(options.from), "from", "expected a mail address")
      .refuse(!options.domain.empty() && !is_address("a@" + options.domain), "domain",
              "expected the name of a domain")
      .refuse(std::ranges::find(advice::kLanguages, options.language) == advice::kLanguages.end(),
              "language", "expected en, de or fr")
      .refuse(!(options.rate > 0 && options.rate <= 1000), "rate",
              "expected more than 0 and at most 1000")
      .refuse(options.max_wait.count() < 0 || options.max_wait > 24 * hours, "max_wait",
              "expected 0s to 24h")
      .refuse(options.digest_quiet.count() < 0 || options.digest_quiet > 24 * hours, "digest_quiet",
              "expected 0s to 24h")
      .refuse(options.digest_max < options.digest_quiet || options.digest_max > 24 * hours,
              "digest_max", "expected digest_quiet to 24h")
      .refuse(options.dry_run_days < 0 || options.dry_run_days > 365, "dry_run_days",
              "expected 0 to 365")
      .refuse(options.retention < std::chrono::days(1), "retention_period", "must be a day or more")
      .refuse(found_monthly == kModes.end(), "monthly", "expected disabled, dry_run or enabled")
      .refuse(sends_monthly && !sends, "monthly", "needs mode: dry_run or enabled")
      .refuse(sends_monthly && options.domain.empty(), "monthly", "needs domain")
      .refuse(found_budgets == kModes.end(), "budgets", "expected disabled, dry_run or enabled")
      .refuse(sends_budgets && !sends, "budgets", "needs mode: dry_run or enabled")
      .refuse(sends_budgets && options.domain.empty(), "budgets", "needs domain")
      .refuse(sends && options.from.empty(), "mode", "needs from")
      .refuse(sends && options.smtp.url.empty() && options.sendmail.empty(), "mode",
              "needs smtp or sendmail");
  CEEMS_TRY(section.done());
  options.mode = static_cast<Mode>(found - kModes.begin());
  options.monthly = static_cast<Mode>(found_monthly - kModes.begin());
  options.budgets = static_cast<Mode>(found_budgets - kModes.begin());
  return options;
}

}  // namespace ceems::mail
