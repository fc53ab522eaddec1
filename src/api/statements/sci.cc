// Software carbon intensity by project (ISO/IEC 21031): SCI = (E · I + M) per R.
#include <fmt/format.h>

#include "api/statements/all.h"
#include "api/statements/lines.h"

namespace ceems::api {
namespace {

constexpr double kGrams = 1000;  // of a kg

void fill_sci(const StatementInputs& inputs, statement::Document& document) {
  document.notes.emplace_back(
      "ISO/IEC 21031: SCI = (E × I + M) per R. E × I is the energy of units by the factor of the "
      "grid in their hours (location-based, as the standard asks), M the emissions of making what "
      "they had reserved. R is a job, and a core-hour.");
  if (!inputs.has_embodied) {
    document.notes.emplace_back("embodied.yml is missing: without M, SCI is not known.");
  }
  std::size_t row = 0;
  for (const StatementProject& project : inputs.projects) {
    ++row;
    const std::string name = project.name.empty() ? "(none)" : project.name;
    const std::string sum =
        fmt::format("(cell(projects.grams, {0}) + 1000 * cell(projects.embodied_kg, {0}))", row);
    const std::optional<double> grams =
        project.grams && project.embodied
            ? std::optional(*project.grams + kGrams * *project.embodied)
            : std::nullopt;
    const auto coverage = project.kwh && *project.kwh > 0
                              ? std::optional(project.grams_of_kwh.value_or(0) / *project.kwh)
                              : std::nullopt;
    const auto add = [&](std::string_view id, std::string_view unit, double of,
                         std::string_view column) {
      document.add({.id = fmt::format("sci_{}_{}", id, row),
                    .section = "Software carbon intensity",
                    .label = name,
                    .value = grams && of > 0 ? std::optional(*grams / of) : std::nullopt,
                    .unit = std::string(unit),
                    .how = statement::How::kModelled,
                    .note = !project.embodied ? "what making its nodes emitted is not known"
                            : project.grams   ? "M is an estimate; coverage is of the energy"
                            : project.kwh     ? "its energy has no emission factor"
                                              : "its energy was not measured",
                    .formula = fmt::format("{} / cell(projects.{}, {})", sum, column, row),
                    .coverage = coverage});
    };
    add("job", "g CO2e/job", project.units, "units");
    add("core_hour", "g CO2e/core-hour", project.core_hours, "core_hours");
  }
  add_hardware(inputs, document);
}

}  // namespace

StatementSpec sci_statement() {
  return {.name = "sci",
          .title = "Software carbon intensity of projects",
          .help = "ISO/IEC 21031 by project, for a job and for a core-hour",
          .fill = fill_sci};
}

}  // namespace ceems::api
