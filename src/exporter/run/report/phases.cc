#include "exporter/run/report/phases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/text/html.h"
#include "base/time/durations.h"
#include "base/time/time_text.h"

namespace ceems::exporter::run {
namespace {

/// "28.3 kJ": three digits.
std::string joules_each(double joules) {
  constexpr std::array kUnits{"mJ", "J", "kJ", "MJ", "GJ", "TJ"};
  constexpr double kStep = 1000;
  double value = joules * kStep;
  std::size_t unit = 0;
  while (value >= kStep && unit + 1 < kUnits.size()) {
    value /= kStep;
    ++unit;
  }
  return fmt::format("{:.3g} {}", value, kUnits.at(unit));
}

std::string energy_cell(const std::optional<double>& joules) {
  return !joules                          ? "-"
         : *joules >= 0.1 * kJoulesPerKwh ? fmt::format("{:.3g} kWh", *joules / kJoulesPerKwh)
                                          : joules_each(*joules);
}

std::string with_measure(double value, const std::string& measure) {
  return fmt::format("{:.6g}{}{}", value, measure.empty() ? "" : " ", printable(measure));
}

/// The columns of a phase, the first two as text.
constexpr std::array kColumns{"Phase", "Slowest node", "Time", "Share", "Energy", "W per node"};

std::array<std::string, kColumns.size()> cells_of(const Phase& phase) {
  constexpr double kNotable = 0.005;
  return {printable(phase.region) + (phase.count > 1 ? fmt::format(" × {}", phase.count) : ""),
          phase.longer >= kNotable
              ? fmt::format("{} +{:.0f} %", printable(phase.slowest), 100 * phase.longer)
              : "",
          elapsed_text(static_cast<std::int64_t>(std::llround(phase.seconds))),
          fmt::format("{:.0f} %", 100 * phase.share),
          energy_cell(phase.joules),
          phase.watts ? fmt::format("{:.0f}", *phase.watts) : "-"};
}

void add(std::optional<double>& sum, const std::optional<double>& value) {
  if (value) {
    sum = sum.value_or(0) + *value;
  }
}

Phase phase_of(const std::string& name,
               const std::vector<std::pair<const NodeSummary*, const RegionSummary*>>& parts,
               double elapsed) {
  Phase phase{.region = name, .nodes = parts.size()};
  double seconds = 0;
  double powered = 0;  // seconds with a known energy
  for (const auto& [node, region] : parts) {
    phase.count = std::max(phase.count, region->count);
    seconds += region->seconds;
    if (region->seconds >= phase.seconds) {
      phase.seconds = region->seconds;
      phase.slowest = parts.size() > 1 ? node->node : "";
    }
    powered += region->joules ? region->seconds : 0;
    add(phase.joules, region->joules);
    add(phase.self_joules, region->self_joules);
  }
  const double mean = seconds / static_cast<double>(parts.size());
  phase.longer = parts.size() > 1 && mean > 0 ? phase.seconds / mean - 1 : 0;
  phase.share = elapsed > 0 ? std::min(phase.seconds / elapsed, 1.0) : 0;
  if (phase.joules && powered > 0) {
    phase.watts = *phase.joules / powered;
  }
  return phase;
}

}  // namespace

std::vector<Phase> phases_of(const Report& report) {
  std::map<std::string, std::vector<std::pair<const NodeSummary*, const RegionSummary*>>> parts;
  for (const NodeSummary& node : report.nodes) {
    for (const RegionSummary& region : node.regions) {
      parts[region.name].emplace_back(&node, &region);
    }
  }
  std::vector<Phase> phases;
  phases.reserve(parts.size());
  for (const auto& [name, of_nodes] : parts) {
    phases.push_back(phase_of(name, of_nodes, report.elapsed_seconds()));
  }
  std::ranges::sort(phases, [](const Phase& left, const Phase& right) {
    return std::pair(-left.seconds, left.region) < std::pair(-right.seconds, right.region);
  });
  return phases;
}

std::vector<ResultSum> results_of(const Report& report) {
  std::map<std::pair<std::string, std::string>, double> sums;
  for (const NodeSummary& node : report.nodes) {
    for (const ResultSummary& result : node.results) {
      sums[{result.name, result.measure}] += result.total;
    }
  }
  const double joules = report.total_joules();
  std::vector<ResultSum> results;
  for (const auto& [name, n] : sums) {
    results.push_back({.name = name.first, .measure = name.second, .n = n});
    if (n > 0 && joules > 0) {
      results.back().joules_per = joules / n;
    }
  }
  return results;
}

std::vector<FomMean> foms_of(const Report& report) {
  struct Sum {
    double last = 0;
    double weighted = 0;
    double seconds = 0;
    double nodes = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const NodeSummary& node : report.nodes) {
    for (const FomSummary& fom : node.foms) {
      Sum& sum = sums[{fom.name, fom.measure}];
      sum.last += fom.last;
      sum.weighted += fom.mean * fom.seconds;
      sum.seconds += fom.seconds;
      ++sum.nodes;
    }
  }
  std::vector<FomMean> foms;
  for (const auto& [name, sum] : sums) {
    const double last = sum.last / sum.nodes;
    foms.push_back({.name = name.first,
                    .measure = name.second,
                    .last = last,
                    .mean = sum.seconds > 0 ? sum.weighted / sum.seconds : last});
  }
  return foms;
}

std::vector<std::string> result_lines(const Report& report) {
  std::vector<std::string> lines;
  for (const ResultSum& result : results_of(report)) {
    lines.push_back(fmt::format(
        "{} {}{}", printable(result.name), with_measure(result.n, result.measure),
        !result.joules_per       ? ""
        : result.measure.empty() ? fmt::format(" · {} each", joules_each(*result.joules_per))
                                 : fmt::format(" · {} per {}", joules_each(*result.joules_per),
                                               printable(result.measure))));
  }
  for (const FomMean& fom : foms_of(report)) {
    lines.push_back(fmt::format("{} {} · {} on average", printable(fom.name),
                                with_measure(fom.last, fom.measure),
                                with_measure(fom.mean, fom.measure)));
  }
  return lines;
}

std::string phases_text(const Report& report) {
  const auto row = [](const auto& cells) {
    return fmt::format("{:<24} {:>10} {:>7} {:>12} {:>11}  {}", cells[0], cells[2], cells[3],
                       cells[4], cells[5], cells[1]);
  };
  std::string text;
  for (const Phase& phase : phases_of(report)) {
    text += text.empty() ? "\n" + row(kColumns) + "\n" : "";
    const std::string line = row(cells_of(phase));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string phases_html(const Report& report) {
  std::string html;
  for (const Phase& phase : phases_of(report)) {
    if (html.empty()) {
      html = "<h2>Phases</h2>\n<div class=\"wide\"><table><thead><tr>";
      for (const char* column : kColumns) {
        html += fmt::format("<th>{}", column);
      }
      html += "</tr></thead>\n<tbody>\n";
    }
    html += "<tr>";
    const auto cells = cells_of(phase);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      html += fmt::format("<td{}>{}</td>", i < 2 ? "" : " class=\"n\"", escape_html(cells.at(i)));
    }
    html += "</tr>\n";
  }
  return html.empty() ? html : html + "</tbody></table></div>\n";
}

void write_marks(JsonWriter& json, const Report& report) {
  const auto optional = [&json](std::string_view name, const std::optional<double>& value) {
    if (value) {
      json.member(name, *value);
    }
  };
  json.key("phases").begin_array();
  for (const Phase& phase : phases_of(report)) {
    json.begin_object().member("region", phase.region);
    json.member("count", static_cast<std::int64_t>(phase.count));
    json.member("nodes", static_cast<std::int64_t>(phase.nodes));
    json.member("seconds", phase.seconds).member("share", phase.share);
    optional("energy_joules", phase.joules);
    optional("self_energy_joules", phase.self_joules);
    optional("watts", phase.watts);
    if (!phase.slowest.empty()) {
      json.member("slowest", phase.slowest).member("longer", phase.longer);
    }
    json.end_object();
  }
  json.end_array().key("results").begin_array();
  for (const ResultSum& result : results_of(report)) {
    json.begin_object().member("result", result.name).member("unit", result.measure);
    json.member("n", result.n);
    optional("joules_per", result.joules_per);
    json.end_object();
  }
  json.end_array().key("fom").begin_array();
  for (const FomMean& fom : foms_of(report)) {
    json.begin_object().member("fom", fom.name).member("unit", fom.measure);
    json.member("last", fom.last).member("mean", fom.mean).end_object();
  }
  json.end_array();
}

}  // namespace ceems::exporter::run
