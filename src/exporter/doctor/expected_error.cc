#include "exporter/doctor/expected_error.h"

#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::exporter {
namespace {

constexpr std::size_t kColumns = 5;
constexpr std::string_view kAllLongJobs = "long jobs";

/// A class that is named by the length of its jobs, such as "0.35 s".
bool is_short(std::string_view name) {
  return name.ends_with(" s");
}

}  // namespace

Result<std::string> expected_error(std::string_view table, MeterSet meters) {
  std::vector<std::string> of_long;
  std::vector<std::string> of_short;
  std::string all;
  bool header = true;
  for (int number = 1; !table.empty(); ++number) {
    const std::string_view line = take_until(table, '\n');
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const auto fields = split(line, ';');
    const auto value = fields.size() == kColumns
                           ? parse_double(fields.at(static_cast<std::size_t>(meters) + 1))
                           : std::nullopt;
    if (header && fields.size() == kColumns) {
      header = false;
      continue;
    }
    if (!value || *value < 0) {
      return fail(ErrorCode::kParse, "table of errors, line {}: expected a class and {} numbers",
                  number, kColumns - 1);
    }
    const std::string_view name = fields.front();
    if (name == kAllLongJobs) {
      all = fmt::format("{} {} %", name, *value);
    } else {
      (is_short(name) ? of_short : of_long).push_back(fmt::format("{} {}", name, *value));
    }
  }
  if (all.empty() || of_long.empty() || of_short.empty()) {
    return fail(ErrorCode::kParse, "table of errors: expected long jobs, their classes and others");
  }
  return fmt::format("{} ({}), jobs of {}", all, fmt::join(of_long, ", "),
                     fmt::join(of_short, ", "));
}

}  // namespace ceems::exporter
