#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cacct/caller.h"
#include "config/flags.h"

namespace ceems::cacct {

/// The command line of `cacct insight`.
struct InsightOptions {
  std::vector<std::string> topic{};  ///< one of idle, budgets, bill
  bool json = false;
  bool csv = false;
  bool all_users = false;
  std::vector<std::string> projects{};
  std::string month{};  ///< of the bill
  std::string by{};     ///< of idle: project, partition, user
};

void add_insight_flags(config::FlagSet& flags, InsightOptions& options);

/// Prints the answer and returns the exit status.
int run_insight(const InsightOptions& options, const Caller& caller);

/// The answer of the API server as text or CSV. Texts of others are made safe for a terminal.
/// kParse if it is not such an answer.
Result<std::string> insight_text(std::string_view topic, bool by, const std::string& answer);
Result<std::string> insight_csv(std::string_view topic, bool by, const std::string& answer);

}  // namespace ceems::cacct
