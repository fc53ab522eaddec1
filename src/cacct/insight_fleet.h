#pragma once

#include <string>

#include "base/result.h"

namespace ceems::cacct {

/// The answer of insight/stragglers as sentences, one for each row, safe for a terminal. kParse if
/// it is not such an answer.
Result<std::string> stragglers_text(const std::string& answer);

}  // namespace ceems::cacct
