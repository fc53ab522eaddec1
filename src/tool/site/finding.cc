#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "tool/site/examine.h"

namespace ceems::tool {
namespace {

std::ptrdiff_t count(const std::vector<Finding>& findings, State state) {
  return std::ranges::count(findings, state, &Finding::state);
}

}  // namespace

std::string_view to_string(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kWarning:
      return "warning";
    case State::kProblem:
      return "problem";
  }
  return "unknown";
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& finding : findings) {
    out +=
        fmt::format("{:<8} {:<11} {}\n", to_string(finding.state), finding.subject, finding.text);
    if (!finding.fix.empty()) {
      out += fmt::format("{:<20} fix: {}\n", "", finding.fix);
    }
  }
  return out + fmt::format("{} problems, {} warnings\n", count(findings, State::kProblem),
                           count(findings, State::kWarning));
}

std::string findings_json(const std::vector<Finding>& findings) {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object().key("findings").begin_array();
  for (const Finding& finding : findings) {
    json.begin_object()
        .member("state", to_string(finding.state))
        .member("subject", finding.subject)
        .member("text", finding.text);
    if (!finding.fix.empty()) {
      json.member("fix", finding.fix);
    }
    json.end_object();
  }
  json.end_array()
      .member("problems", static_cast<std::int64_t>(count(findings, State::kProblem)))
      .member("warnings", static_cast<std::int64_t>(count(findings, State::kWarning)))
      .end_object();
  return out;
}

int findings_status(const std::vector<Finding>& findings) {
  return count(findings, State::kProblem) > 0 ? 1 : 0;
}

}  // namespace ceems::tool
