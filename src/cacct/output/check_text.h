#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::cacct {

/// What the answer of units/check is shown for.
struct CheckLook {
  std::string_view name = {};    ///< of the job; may hold any bytes
  std::string_view prefix = {};  ///< of lines in a script, such as "#SBATCH "
  std::size_t width = 80;
};

/// The answer as text: what the job is expected to take, what earlier runs left unused, the lines
/// to change, where else it could run and when. Texts of the server are made safe for a terminal.
/// kParse if it is not such an answer.
Result<std::string> check_text(const std::string& answer, const CheckLook& look);

/// The most important of it in one line with its end; "" if nothing is known.
Result<std::string> check_line(const std::string& answer, const CheckLook& look);

}  // namespace ceems::cacct
