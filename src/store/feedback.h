#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/report_key.h"

namespace ceems::store {

/// A row of the table ceems_feedback: what a person said of a suggestion for a run. There is one
/// for each run, rule and person.
struct Feedback {
  ReportKey key = {};
  std::string rule = {};
  std::string username = {};  ///< who answered
  std::string answer = {};    ///< "yes", "no" or "not_applicable"
  std::int64_t answered_ms = 0;
};

/// The answers about a rule.
struct FeedbackSum {
  std::string rule = {};
  std::int64_t yes = 0, no = 0, not_applicable = 0;
  std::int64_t people = 0;  ///< who gave them
};

/// Writes answers; store::Reader finds them. Used by one thread at a time. A call is one statement,
/// which neither waits for the window that is being written on a PostgreSQL server nor needs to
/// lead there. Errors: kUnavailable if trying again may help, otherwise kInternal.
class FeedbackWriter {
 public:
  virtual ~FeedbackWriter() = default;

  /// Stores the answer instead of an earlier one of that person.
  virtual Result<> answer(const Feedback& feedback) = 0;
};

}  // namespace ceems::store
