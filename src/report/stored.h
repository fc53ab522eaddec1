#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "report/report.h"

namespace ceems::report {

/// The version of stored reports. Reports of another version are made anew.
inline constexpr int kStoredVersion = 1;

/// The whole report as text to store: base64 of its JSON, compressed with zstd. The same report
/// gives the same text.
std::string to_stored(const Report& report);
/// Reads it: from_stored(to_stored(report)) has the same digits in every form. kParse for other
/// texts.
Result<Report> from_stored(std::string_view text);

}  // namespace ceems::report
