#include <fmt/format.h>

#include "tool/rules/groups.h"
#include "tool/rules/promql.h"

namespace ceems::tool::rules {

// Watts divided by 3.6e6 are kWh per second. Several exporters may export the same factor, and a
// join with more than one series would fail. So the largest factor of a provider counts.

std::vector<Rule> unit_emissions(std::string_view record,
                                 const std::string& power,
                                 const Emissions& emissions) {
  std::vector<Rule> rules;
  const std::string kwh = fmt::format("({} / 3.6e6)", power);
  rules.reserve(emissions.providers.size() + 1);
  for (const std::string& provider : emissions.providers) {
    rules.push_back({.record = std::string(record),
                     .expression = fmt::format(
                         "{}\n  * on () group_left ()\nmax "
                         "(ceems_emissions_gCo2_kWh{{country_code=\"{}\",provider=\"{}\"}})",
                         kwh, escaped(emissions.country_code), escaped(provider)),
                     .labels = {{"provider", provider}}});
  }
  if (rules.empty() && emissions.any()) {
    rules.push_back(
        {.record = std::string(record),
         .expression = fmt::format("{} * {}", with_label(kwh, "provider", emissions.provider),
                                   emissions.grams_per_kwh)});
  }
  return rules;
}

std::vector<Rule> job_emissions(std::string_view record,
                                const std::string& power,
                                std::string_view job,
                                const Emissions& emissions) {
  if (!emissions.any()) {
    return {};
  }
  const std::string kwh = fmt::format("({} / 3.6e6)", power);
  if (!emissions.providers.empty()) {
    const std::string factors = with_label(
        "max by (provider, country_code, country) (ceems_emissions_gCo2_kWh)", "job", job);
    return {{.record = std::string(record),
             .expression = fmt::format("{}\n  * on (job) group_left ()\n{}", factors, kwh)}};
  }
  std::string labelled = with_label(kwh, "provider", emissions.provider);
  if (!emissions.country_code.empty()) {
    labelled = with_label(labelled, "country_code", emissions.country_code);
  }
  return {{.record = std::string(record),
           .expression = fmt::format("{} * {}", labelled, emissions.grams_per_kwh)}};
}

}  // namespace ceems::tool::rules
