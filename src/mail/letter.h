#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/digest.h"
#include "report/report.h"

namespace ceems::mail {

/// The job as slurmctld names it. Texts are untrusted.
struct JobNames {
  std::string cluster = {}, id = {}, name = {}, user = {}, state = {};
  std::string array = {};      ///< ID of the array that it is a task of
  bool heterogeneous = false;  ///< `array` is a heterogeneous job, whose tasks are its parts
};

/// What a mail says.
struct Letter {
  std::string subject = {}, text = {}, html = {};
  std::vector<std::string> rules = {};  ///< that it mentions
};

struct LetterOptions {
  std::string language = "en";
  std::string help_url = {};
  /// The page on which the user mutes a rule, "*" for all mails; "" if there is none.
  std::function<std::string(const std::string& user, const std::string& rule)> mute_url = {};
  std::vector<std::string> muted = {};  ///< rules that are not mentioned
};

/// About one job. `report` is null if nothing is known of it; the mail says so, and if the report
/// is not final.
Letter job_letter(const JobNames& job,
                  const report::Report* report,
                  bool final,
                  const LetterOptions& options);

/// Tasks of an array.
struct ArraySums {
  std::map<std::string, std::size_t> states = {};  ///< how many tasks ended in each state
  std::size_t known = 0;                           ///< tasks whose energy is known
  report::Number kwh = {};                         ///< of these
};
/// About tasks of an array or parts of a heterogeneous job. `example` is the report of one of them,
/// which stands for all.
Letter array_letter(const JobNames& job,
                    const ArraySums& sums,
                    const report::Report* example,
                    const LetterOptions& options);

/// What the user mutes who does not want any mails with reports.
inline constexpr std::string_view kAllMails = "*";
/// What the user mutes who does not want digests of months; no rule of advice has this id.
inline constexpr std::string_view kMonthlyDigest = "monthly-digest";

/// The digest of a month of a user.
Letter month_letter(const std::string& user,
                    const report::Digest& digest,
                    const LetterOptions& options);

/// A budget of a project, a share of which has passed in its period.
struct PassedBudget {
  std::string id = {};  ///< names the budget, the period and the share
  std::string project = {};
  std::string cluster = {};  ///< empty: all clusters together
  std::string period = {};   ///< "2026", "2026-11"
  double share = 0;          ///< that has passed: 0.8
  enum class Unit : std::uint8_t { kKwh, kKgCo2, kCost } unit = Unit::kKwh;
  std::string currency = {};  ///< of a cost
  double amount = 0, used = 0;
  double forecast_low = 0, forecast_high = 0;  ///< of what will be used at the end
  std::vector<std::string> leads = {};         ///< who lead the project
};

/// What a lead mutes who does not want mails about budgets; no rule of advice has this id.
inline constexpr std::string_view kBudgetWarnings = "budget-warnings";

/// About a budget, for one who leads the project.
Letter budget_letter(const std::string& lead,
                     const PassedBudget& budget,
                     const LetterOptions& options);

}  // namespace ceems::mail
