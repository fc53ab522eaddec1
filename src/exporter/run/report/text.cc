#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "base/time/time_text.h"
#include "exporter/run/report/phases.h"
#include "exporter/run/report/report.h"

namespace ceems::exporter::run {
namespace {

/// A unit of energy for a number of joules.
struct EnergyUnit {
  std::string_view name;
  double joules;
};

EnergyUnit energy_unit(double joules) {
  constexpr double kLeast = 0.1;
  for (const EnergyUnit unit : {EnergyUnit{.name = "kWh", .joules = kJoulesPerKwh},
                                EnergyUnit{.name = "Wh", .joules = kHourSeconds}}) {
    if (joules >= kLeast * unit.joules) {
      return unit;
    }
  }
  return {.name = "J", .joules = 1};
}

/// Three significant digits at most, without an exponent.
std::string number_text(double value) {
  const int digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}", value, digits);
}

std::string percent_text(double part) {
  return fmt::format("{:.0f} %", 100 * part);
}

/// What people call a domain.
std::string_view name_of(std::string_view domain) {
  return domain == "gpu"       ? "GPUs"
         : domain == "package" ? "CPUs"
         : domain == "dram"    ? "memory"
         : domain == "other"   ? "rest"
                               : domain;
}

std::string method_text(const std::map<std::string, std::string>& methods,
                        const std::string& domain) {
  const auto found = methods.find(domain);
  const std::string method = found == methods.end() ? "" : found->second;
  return method == "modelled" ? "modelled ±50 %" : printable(method);
}

}  // namespace

std::string energy_text(const Report& report) {
  const double total = report.total_joules();
  const EnergyUnit unit = energy_unit(total);
  const auto joules = report.joules();
  const auto methods = report.methods();
  std::string parts;
  for (const char* domain : {"gpu", "package", "dram", "other"}) {
    const auto found = joules.find(domain);
    if (found == joules.end()) {
      continue;
    }
    parts += fmt::format("{}{} {} {}", parts.empty() ? "" : ", ", name_of(domain),
                         number_text(found->second / unit.joules), method_text(methods, domain));
  }
  std::string text = fmt::format("{} {}", number_text(total / unit.joules), unit.name);
  if (joules.size() == 1) {
    return fmt::format("{} ({})", text, method_text(methods, joules.begin()->first));
  }
  return parts.empty() ? "energy unknown" : fmt::format("{} ({})", text, parts);
}

std::vector<std::string> summary_lines(const Report& report) {
  std::string first = fmt::format(
      "{} · {}", elapsed_text(static_cast<std::int64_t>(std::llround(report.elapsed_seconds()))),
      energy_text(report));
  if (const auto use = report.cpu_use()) {
    first += fmt::format(" · CPUs {} busy", percent_text(*use));
  }
  if (const auto use = report.gpu_use()) {
    first += fmt::format(" · GPUs {} busy", percent_text(*use));
  }
  if (const auto peak = report.memory_peak_bytes()) {
    first += fmt::format(" · at most {} of memory{}", bytes_text(*peak),
                         report.nodes.size() > 1 ? " on a node" : "");
  }
  std::vector<std::string> lines{std::move(first)};
  std::ranges::move(result_lines(report), std::back_inserter(lines));
  for (std::string& remark : remarks(report)) {
    lines.push_back(std::move(remark));
  }
  return lines;
}

std::string to_text(const Report& report) {
  const NodeSummary& first = report.nodes.front();
  std::string text = fmt::format(
      "Job {} · {}{}\nStarted {}\n", printable(first.job), printable(first.name),
      first.cluster.empty() ? "" : " · " + printable(first.cluster), time_text(report.begin_ms()));
  if (const auto status = report.exit_status()) {
    text += fmt::format("Exit status {}\n", *status);
  }
  text += "\n";
  for (const std::string& line : summary_lines(report)) {
    text += line + "\n";
  }
  text += fmt::format("\n{:<24} {:>10} {:>12} {:>12} {:>10} {:>10}\n", "Node", "Time", "Energy",
                      "CPU time", "CPUs busy", "Memory");
  for (const NodeSummary& node : report.nodes) {
    const EnergyUnit unit = energy_unit(node.total_joules());
    const double most = node.cpus * node.elapsed_seconds();
    text +=
        fmt::format("{:<24} {:>10} {:>12} {:>10.2f} s {:>10} {:>10}\n", printable(node.node),
                    elapsed_text(static_cast<std::int64_t>(std::llround(node.elapsed_seconds()))),
                    fmt::format("{} {}", number_text(node.total_joules() / unit.joules), unit.name),
                    node.cpu_seconds, most > 0 ? percent_text(node.cpu_seconds / most) : "-",
                    node.memory_peak_bytes ? bytes_text(*node.memory_peak_bytes) : "-");
  }
  const std::string placement = placement_line(report);
  return text + phases_text(report) + (placement.empty() ? "" : "\n" + placement + "\n");
}

std::string to_json(const Report& report) {
  const NodeSummary& first = report.nodes.front();
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object().member("v", 1).member("job", first.job).member("name", first.name);
  json.member("cluster", first.cluster).member("begin_ms", report.begin_ms());
  json.member("elapsed_seconds", report.elapsed_seconds());
  if (const auto status = report.exit_status()) {
    json.member("exit_status", *status);
  }
  json.member("energy_joules", report.total_joules()).key("domains").begin_object();
  for (const auto& [domain, joules] : report.joules()) {
    json.member(domain, joules);
  }
  json.end_object().key("methods").begin_object();
  for (const auto& [domain, method] : report.methods()) {
    json.member(domain, method);
  }
  json.end_object().member("cpu_seconds", report.cpu_seconds());
  for (const auto& [name, value] :
       {std::pair{"cpu_use", report.cpu_use()}, std::pair{"gpu_use", report.gpu_use()},
        std::pair{"memory_peak_bytes", report.memory_peak_bytes()}}) {
    if (value) {
      json.member(name, *value);
    }
  }
  json.key("nodes").begin_array();
  for (const NodeSummary& node : report.nodes) {
    const std::string summary = to_json(node);
    json.raw(trim(summary));
  }
  json.end_array();
  write_marks(json, report);
  json.member("placement", placement_line(report));
  for (const auto& [name, texts] :
       {std::pair{"missing", report.missing}, std::pair{"remarks", remarks(report)}}) {
    json.key(name).begin_array();
    for (const std::string& one : texts) {
      json.value(one);
    }
    json.end_array();
  }
  json.end_object();
  return text + "\n";
}

}  // namespace ceems::exporter::run
