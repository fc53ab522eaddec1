#include "base/text/html.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/time_text.h"
#include "exporter/run/report/phases.h"
#include "exporter/run/report/report.h"

namespace ceems::exporter::run {
namespace {

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; font: 93.75%/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 1.5rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 1.75rem 0 .5rem; border-bottom: 1px solid; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .2rem 1rem .2rem 0; font-weight: normal; }
thead th { font-weight: 600; }
td.n { white-space: nowrap; text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif; }
svg .axis { stroke: currentColor; stroke-opacity: .4; fill: none; }
svg .line { stroke: currentColor; stroke-width: 1.5; fill: none; stroke-linejoin: round; }
svg text { fill: currentColor; }
@media print { :root { color-scheme: light; font-size: 10pt; } h2, tr, svg { break-inside: avoid; } }
)css";

using Values = std::vector<std::optional<double>>;
using Format = std::function<std::string(double)>;

/// 1, 2 or 5 times a power of ten, at least `value`.
double round_up(double value) {
  if (!(value > 0)) {
    return 1;
  }
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (value <= factor * power) {
      return factor * power;
    }
  }
  return 10 * power;
}

/// A line over time, with the highest value and the times at both ends as text.
std::string chart(std::string_view title, const Values& values, double step, const Format& format) {
  constexpr double kWidth = 720;
  constexpr double kHeight = 160;
  constexpr double kLeft = 64;
  constexpr double kTop = 8;
  constexpr double kBottom = 20;
  double highest = 0;
  double sum = 0;
  std::size_t count = 0;
  for (const auto& value : values) {
    highest = std::max(highest, value.value_or(0));
    sum += value.value_or(0);
    count += value ? 1U : 0U;
  }
  const double top = round_up(highest);
  const double mean = count > 0 ? sum / static_cast<double>(count) : 0;
  const auto y_of = [&](double value) {
    return kTop + (kHeight - kTop - kBottom) * (1 - value / top);
  };
  std::string path;
  bool pen = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::optional<double>& value = values[i];
    if (!value) {
      pen = false;
      continue;
    }
    const double width = (kWidth - kLeft) / static_cast<double>(values.size());
    const double x = kLeft + width * static_cast<double>(i);
    const double y = y_of(*value);
    path += fmt::format("{}{:.1f} {:.1f}H{:.1f}", pen ? "L" : "M", x, y, x + width);
    pen = true;
  }
  const auto seconds = static_cast<std::int64_t>(step * static_cast<double>(values.size()));
  return fmt::format(
      "<h2>{0}</h2>\n<svg viewBox=\"0 0 {1} {2}\" role=\"img\" aria-label=\"{0}: mean {3}, highest "
      "{4}\"><path class=\"axis\" d=\"M{5} {6}V{7}H{1}M{5} {6}H{1}\"/><path class=\"line\" "
      "d=\"{8}\"/><text x=\"{9}\" y=\"{10}\" text-anchor=\"end\">{11}</text><text x=\"{9}\" "
      "y=\"{7}\" text-anchor=\"end\">0</text><text x=\"{5}\" y=\"{12}\">0:00</text><text x=\"{1}\" "
      "y=\"{12}\" text-anchor=\"end\">{13}</text></svg>\n<p>Mean {3}, highest {4}.</p>\n",
      title, kWidth, kHeight, format(mean), format(highest), kLeft, kTop, kHeight - kBottom, path,
      kLeft - 4, kTop + 8, format(top), kHeight - 4, elapsed_text(seconds));
}

std::string cell(const std::string& text, bool number = true) {
  return fmt::format("<td{}>{}</td>", number ? " class=\"n\"" : "", escape_html(text));
}

std::string seconds_cell(const std::optional<double>& seconds, double all) {
  return cell(seconds && all > 0 ? fmt::format("{:.0f} %", 100 * std::min(*seconds / all, 1.0))
                                 : std::string());
}

std::string node_table(const Report& report) {
  std::string html =
      "<h2>Nodes</h2>\n<div class=\"wide\"><table><thead><tr><th>Node<th>Time<th>Energy<th>CPU "
      "time<th>CPUs<th>Memory at most</tr></thead>\n<tbody>\n";
  for (const NodeSummary& node : report.nodes) {
    html += fmt::format(
        "<tr>{}{}{}{}{}{}</tr>\n", cell(printable(node.node), false),
        cell(elapsed_text(static_cast<std::int64_t>(std::llround(node.elapsed_seconds())))),
        cell(fmt::format("{:.0f} J", node.total_joules())),
        cell(fmt::format("{:.2f} s", node.cpu_seconds)), cell(fmt::format("{:.0f}", node.cpus)),
        cell(node.memory_peak_bytes ? bytes_text(*node.memory_peak_bytes) : std::string()));
  }
  return html + "</tbody></table></div>\n";
}

std::string gpu_table(const Report& report) {
  std::string rows;
  for (const NodeSummary& node : report.nodes) {
    for (const GpuSummary& gpu : node.gpus) {
      rows += fmt::format(
          "<tr>{}{}{}{}{}</tr>\n", cell(printable(node.node), false),
          cell(printable(gpu.index), false), seconds_cell(gpu.busy_seconds, node.elapsed_seconds()),
          seconds_cell(gpu.sm_seconds, node.elapsed_seconds()),
          cell(gpu.memory_peak_bytes ? bytes_text(*gpu.memory_peak_bytes) : std::string()));
    }
  }
  return rows.empty() ? std::string()
                      : "<h2>GPUs</h2>\n<div class=\"wide\"><table><thead><tr><th>Node<th>GPU<th>"
                        "Busy<th>SMs busy<th>Memory at most</tr></thead>\n<tbody>\n" +
                            rows + "</tbody></table></div>\n";
}

}  // namespace

std::string to_html(const Report& report) {
  const NodeSummary& first = report.nodes.front();
  const std::string title =
      escape_html(fmt::format("Job {}: {}", printable(first.job), printable(first.name)));
  const auto status = report.exit_status();
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}"
      "</title>\n<style>{1}</style></head>\n<body>\n<h1>{0}</h1>\n<p>Started {2}{3}.</p>\n",
      title, kStyle, time_text(report.begin_ms()),
      status ? fmt::format(", exit status {}", *status) : "");
  for (const std::string& line : summary_lines(report)) {
    html += fmt::format("<p>{}</p>\n", escape_html(line));
  }
  if (!report.course.empty()) {
    const Course& course = report.course;
    html += chart("Power", course.watts, course.step_seconds,
                  [](double value) { return fmt::format("{:.4g} W", value); });
    html += chart("Busy CPUs", course.cpus, course.step_seconds,
                  [](double value) { return fmt::format("{:.3g}", value); });
    html += chart("Memory", course.memory_bytes, course.step_seconds, bytes_text);
  }
  const std::string placement = placement_line(report);
  return html + phases_html(report) + node_table(report) + gpu_table(report) +
         (placement.empty() ? "" : fmt::format("<p>{}</p>\n", escape_html(placement))) +
         "<p>Energy of CPUs, memory and the rest of a node is the job's share of it. What is "
         "modelled was not measured: it is estimated from the use of the "
         "CPUs.</p>\n</body></html>\n";
}

}  // namespace ceems::exporter::run
