#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ceems::tool {

enum class State { kOk, kWarning, kProblem };

/// One thing that was examined, in words for operators.
struct Finding {
  State state = State::kOk;
  std::string subject;  ///< "exporters", "api server", ...
  std::string text;     ///< what is so
  std::string fix;      ///< what to do; empty if nothing
};

std::string_view to_string(State state);
/// One line per finding, its fix on the next one, and a count at the end. States are words.
std::string findings_text(const std::vector<Finding>& findings);
/// {"findings":[{"state":"problem","subject":"...","text":"...","fix":"..."}],"problems":1,...}
std::string findings_json(const std::vector<Finding>& findings);
/// 1 if there is a problem, otherwise 0.
int findings_status(const std::vector<Finding>& findings);

}  // namespace ceems::tool
