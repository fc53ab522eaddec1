#include "tool/validate/check.h"

#include <cmath>
#include <utility>

#include "crypto/signature.h"

namespace ceems::tool::validate {
namespace {

constexpr double kRounding = 0.051;  // percent; errors are stored to the tenth

bool same_number(double left, double right) {
  return std::abs(left - right) <= kRounding + 1e-9 * std::abs(left);
}

Result<> compare(const std::vector<ClassError>& stored, const std::vector<ClassError>& computed) {
  if (stored.size() != computed.size()) {
    return fail(ErrorCode::kInvalidArgument, "expected errors of {} classes, the file has {}",
                computed.size(), stored.size());
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const ClassError& left = stored[i];
    const ClassError& right = computed[i];
    if (left.name != right.name || left.runs != right.runs || !same_number(left.bias, right.bias) ||
        !same_number(left.error, right.error) ||
        !same_number(left.share_error, right.share_error)) {
      return fail(ErrorCode::kInvalidArgument,
                  "the file says {:+.1f} %, mean error {:.1f} % for {} runs of '{}'; its minutes "
                  "give {:+.1f} %, mean error {:.1f} % for {} runs of '{}'",
                  left.bias, left.error, left.runs, left.name, right.bias, right.error, right.runs,
                  right.name);
    }
  }
  return {};
}

}  // namespace

Result<CheckedRecord> check_record(std::string_view text) {
  CEEMS_TRY(file, parse_record(text));
  if (!crypto::is_signed_by(file.public_key, canonical_text(file.record), file.signature)) {
    return fail(ErrorCode::kPermissionDenied,
                "the signature does not fit: the file was changed after it was written");
  }
  CheckedRecord checked{.file = std::move(file), .outcomes = {}, .shortcomings = {}};
  CEEMS_TRY(outcomes, outcomes_of(checked.file.record));
  CEEMS_TRY(compare(checked.file.record.errors, errors_of(outcomes)));
  checked.outcomes = std::move(outcomes);
  checked.shortcomings = shortcomings_of(checked.file.record);
  return checked;
}

Result<SignedRecord> sign_record(Record record, std::string_view private_key) {
  CEEMS_TRY(outcomes, outcomes_of(record));
  record.errors = errors_of(outcomes);
  CEEMS_TRY(public_key, crypto::public_key_of(private_key));
  CEEMS_TRY(signature, crypto::sign(private_key, canonical_text(record)));
  return SignedRecord{.record = std::move(record),
                      .public_key = std::move(public_key),
                      .signature = std::move(signature)};
}

}  // namespace ceems::tool::validate
