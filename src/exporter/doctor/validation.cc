#include "exporter/doctor/validation.h"

#include <cstddef>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
#include "exporter/energy/meter/power_model.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr std::size_t kColumns = 5;
constexpr std::string_view kAllLongJobs = "long jobs";

/// A class that is named by the length of its jobs, such as "0.35 s".
bool is_short(std::string_view name) {
  return name.ends_with(" s");
}

constexpr std::size_t kFirstClass = 2;  // after the family and the number of results
constexpr std::string_view kHeading = "family;results;idle;compute;scalar;memory-bound;mixed;all";

/// The percentages of a row by column; nothing for a row of another form.
std::optional<std::vector<double>> numbers_of(const std::vector<std::string_view>& cells,
                                              std::size_t columns) {
  std::vector<double> numbers(cells.size(), -1);  // a class that did not run
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const auto number = parse_double(cells[i]);
    const bool may_miss = i >= kFirstClass && cells[i].empty();
    if (!may_miss && (!number || *number < 0)) {
      return std::nullopt;
    }
    numbers[i] = number.value_or(-1);
  }
  return cells.size() == columns ? std::optional(numbers) : std::nullopt;
}

std::string sentence(const std::vector<std::string_view>& names,
                     std::string_view family,
                     const std::vector<double>& numbers) {
  std::vector<std::string> classes;
  for (std::size_t i = kFirstClass + 1; i + 1 < numbers.size(); ++i) {
    if (numbers[i] >= 0) {
      classes.push_back(fmt::format("{} {}", names[i], numbers[i]));
    }
  }
  std::string text =
      fmt::format("{} real node{} with {} {} validated: mean error of loads {} % ({})", numbers[1],
                  numbers[1] == 1 ? "" : "s", family, numbers[1] == 1 ? "was" : "were",
                  numbers.back(), fmt::join(classes, ", "));
  if (numbers[kFirstClass] >= 0) {
    text += fmt::format(", of the idle node {} %", numbers[kFirstClass]);
  }
  return text;
}

/// The name of the CPU's family in the table of the power model; empty for an unknown one.
std::string family_of(const host::Paths& paths) {
  const auto text = host::read_file((paths.proc / "cpuinfo").string());
  const auto table = energy::parse_power_table(energy::kCpusCsv);
  const auto* power =
      text && table ? energy::find_power(*table, energy::parse_cpu_identity(*text)) : nullptr;
  return power == nullptr || power->name.starts_with("Other ") ||
                 power->name.starts_with("Unknown ")
             ? std::string()
             : std::string(power->name);
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

Result<std::string> validated_error(std::string_view table, std::string_view family) {
  const auto names = split(kHeading, ';');
  bool heading = true;
  std::string found;
  for (int number = 1; !table.empty(); ++number) {
    const std::string_view line = take_until(table, '\n');
    if (line.empty() || line.front() == '#') {
      continue;
    }
    if (heading && line == kHeading) {
      heading = false;
      continue;
    }
    const auto cells = split(line, ';');
    const auto numbers = numbers_of(cells, names.size());
    if (heading || !numbers || numbers->at(1) < 1 || numbers->back() < 0) {
      return fail(ErrorCode::kParse, "table of results, line {}: expected '{}'", number, kHeading);
    }
    if (cells.front() == family) {
      found = sentence(names, family, *numbers);
    }
  }
  return found;
}

void examine_validation(const DoctorContext& context, Findings& findings) {
  Report report(context, findings, "validation");
  const std::string family = family_of(context.paths);
  const auto text = validated_error(kResultsCsv, family);
  if (!text) {
    report.cannot(text.error().message, "run 'scripts/validation --write' and build again");
  } else if (text->empty()) {
    report.off(
        fmt::format("no one has validated the energy of a node with {} yet: 'ceems_tool "
                    "validate energy' does, with a meter of the node",
                    family.empty() ? "this CPU" : family));
  } else {
    report.works(*text);
  }
}

}  // namespace ceems::exporter
