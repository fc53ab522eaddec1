#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tool/validate/outcomes.h"
#include "tool/validate/record.h"

namespace ceems::tool::validate {

/// A file that was checked.
struct CheckedRecord {
  SignedRecord file;
  std::vector<Outcome> outcomes;
  std::vector<std::string> shortcomings;
};

/// Reads a file, verifies its signature, and computes its errors again. Errors: kParse for another
/// form; kPermissionDenied if the signature does not fit; kInvalidArgument if the errors in the
/// file do not follow from its minutes.
Result<CheckedRecord> check_record(std::string_view text);

/// Computes the errors of a record and signs it with a private key.
Result<SignedRecord> sign_record(Record record, std::string_view private_key);

/// An error that a reader must notice: in percent, in magnitude.
inline constexpr double kLargeError = 25;

/// The node, the meters and the errors by class as lines for people. Large errors are pointed out.
std::string summary_text(const CheckedRecord& checked);

/// The report in Markdown: errors by class, every load, the node and what limits the result.
std::string report_text(const CheckedRecord& checked);

}  // namespace ceems::tool::validate
