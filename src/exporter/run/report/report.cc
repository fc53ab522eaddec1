#include "exporter/run/report/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "exporter/run/job_file.h"
#include "exporter/run/report/course.h"

namespace ceems::exporter::run {
namespace {

constexpr std::size_t kMaxSummary = std::size_t{1} << 20U;
constexpr std::size_t kMaxFacts = std::size_t{8} << 20U;
constexpr std::size_t kMaxReports = 65'536;
constexpr std::size_t kParts = 240;  // of the time, in charts

}  // namespace

const std::string_view kFactsFile = "run.json";
const std::string_view kSummaryEnding = ".sum";
const std::string_view kSamplesEnding = ".cjf";

std::string to_json(const RunFacts& facts) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object().member("v", 1).member("job", facts.job).member("name", facts.name);
  json.member("cluster", facts.cluster).key("nodes").begin_array();
  for (const std::string& node : facts.nodes) {
    json.value(node);
  }
  json.end_array().end_object();
  return text + "\n";
}

Result<RunFacts> parse_facts(std::string_view text) {
  JsonScanner scanner(text);
  RunFacts facts;
  const auto read_nodes = [&] {
    if (!scanner.take('[')) {
      return false;
    }
    while (!scanner.take(']')) {
      if ((!facts.nodes.empty() && !scanner.take(',')) || facts.nodes.size() >= kMaxReports ||
          !scanner.string(facts.nodes.emplace_back())) {
        return false;
      }
    }
    return true;
  };
  const bool good = each_member(scanner, [&](const std::string& name) {
    std::string ignored;
    return name == "job"       ? scanner.string(facts.job)
           : name == "name"    ? scanner.string(facts.name)
           : name == "cluster" ? scanner.string(facts.cluster)
           : name == "nodes"   ? read_nodes()
                               : scanner.value(ignored, 1);
  });
  if (!good || !scanner.at_end()) {
    return fail(ErrorCode::kParse, "not the facts of a run");
  }
  return facts;
}

Result<Report> read_report(const DataDirectory& directory) {
  CEEMS_TRY(names, directory.names());
  Report report;
  std::vector<std::vector<NodeCourse::Point>> courses;
  for (const std::string& name : names) {
    if (!name.ends_with(kSummaryEnding) || name.starts_with('.') ||
        report.nodes.size() >= kMaxReports) {
      continue;
    }
    const auto text = directory.read(name, kMaxSummary);
    auto summary = text ? parse_summary(*text) : fail(text.error());
    if (!summary) {
      report.faults.push_back(fmt::format("{}: {}", printable(name), summary.error().message));
      continue;
    }
    report.nodes.push_back(*std::move(summary));
    const std::string samples =
        name.substr(0, name.size() - kSummaryEnding.size()) + std::string(kSamplesEnding);
    NodeCourse course;
    if (const auto read =
            read_job_file(directory, samples, [&](std::string_view line) { course.add(line); });
        !read && read.error().code != ErrorCode::kNotFound) {
      report.faults.push_back(printable(read.error().message, kMaxSummary));
    }
    courses.push_back(course.points());
  }
  if (report.nodes.empty()) {
    return fail(ErrorCode::kNoData, "{}: it has no data of a run", directory.path());
  }
  std::int64_t end_ms = 0;
  for (const NodeSummary& node : report.nodes) {
    end_ms = std::max(end_ms, node.end_ms);
  }
  report.course = course_of(courses, report.begin_ms(), end_ms, kParts);
  std::ranges::sort(report.nodes, {}, &NodeSummary::node);
  if (const auto text = directory.read(std::string(kFactsFile), kMaxFacts)) {
    if (const auto facts = parse_facts(*text)) {
      for (const std::string& node : facts->nodes) {
        if (!std::ranges::binary_search(report.nodes, node, {}, &NodeSummary::node)) {
          report.missing.push_back(node);
        }
      }
    }
  }
  return report;
}

std::int64_t Report::begin_ms() const {
  return std::ranges::min(nodes, {}, &NodeSummary::begin_ms).begin_ms;
}

double Report::elapsed_seconds() const {
  const auto end = std::ranges::max(nodes, {}, &NodeSummary::end_ms).end_ms;
  return std::max(0.0, static_cast<double>(end - begin_ms()) / 1e3);
}

double Report::total_joules() const {
  double sum = 0;
  for (const NodeSummary& node : nodes) {
    sum += node.total_joules();
  }
  return sum;
}

std::map<std::string, double> Report::joules() const {
  std::map<std::string, double> sums;
  for (const NodeSummary& node : nodes) {
    for (const auto& [domain, joules] : node.energy_joules) {
      sums[domain] += joules;
    }
  }
  return sums;
}

std::map<std::string, std::string> Report::methods() const {
  std::map<std::string, std::string> methods;
  for (const NodeSummary& node : nodes) {
    for (const auto& [domain, method] : node.method) {
      std::string& known = methods[domain];
      known = known.empty() || method == "modelled" ? method : known;
    }
  }
  return methods;
}

double Report::cpu_seconds() const {
  double sum = 0;
  for (const NodeSummary& node : nodes) {
    sum += node.cpu_seconds;
  }
  return sum;
}

std::optional<double> Report::cpu_use() const {
  double most = 0;
  for (const NodeSummary& node : nodes) {
    most += node.cpus * node.elapsed_seconds();
  }
  return most > 0 ? std::optional(cpu_seconds() / most) : std::nullopt;
}

std::optional<double> Report::gpu_use() const {
  double busy = 0;
  double most = 0;
  for (const NodeSummary& node : nodes) {
    for (const GpuSummary& gpu : node.gpus) {
      busy += gpu.busy_seconds.value_or(0);
      most += gpu.busy_seconds ? node.elapsed_seconds() : 0;
    }
  }
  return most > 0 ? std::optional(std::min(busy / most, 1.0)) : std::nullopt;
}

std::optional<double> Report::memory_peak_bytes() const {
  std::optional<double> most;
  for (const NodeSummary& node : nodes) {
    if (node.memory_peak_bytes) {
      most = std::max(most.value_or(0), *node.memory_peak_bytes);
    }
  }
  return most;
}

std::optional<int> Report::exit_status() const {
  for (const NodeSummary& node : nodes) {
    if (node.exit_status) {
      return node.exit_status;
    }
  }
  return std::nullopt;
}

std::vector<std::string> remarks(const Report& report) {
  constexpr double kShort = 60;  // seconds, of which little can be said
  constexpr std::size_t kMaxRemarks = 20;
  std::vector<std::string> found;
  std::string missing;
  for (std::size_t i = 0; i < report.missing.size() && i < kMaxRemarks; ++i) {
    missing += (i == 0 ? "" : ", ") + printable(report.missing[i]);
  }
  if (!missing.empty()) {
    found.push_back(fmt::format("{} of {} nodes sent no data: {}{}.", report.missing.size(),
                                report.missing.size() + report.nodes.size(), missing,
                                report.missing.size() > kMaxRemarks ? ", …" : ""));
  }
  for (const NodeSummary& node : report.nodes) {
    const std::string name = printable(node.node);
    if (found.size() >= kMaxRemarks) {
      break;
    }
    if (!node.ended) {
      found.push_back(fmt::format(
          "The end of the run was not recorded on {}; up to 10 s may be missing.", name));
    }
    for (const std::string& fault : node.placement_faults) {
      found.push_back(fmt::format("On {}, {}.", name, printable(fault)));
    }
    if (node.elapsed_seconds() < kShort) {
      continue;
    }
    for (const GpuSummary& gpu : node.gpus) {
      if (gpu.busy_seconds && *gpu.busy_seconds <= 0) {
        found.push_back(fmt::format("GPU {} of {} was never used.", printable(gpu.index), name));
      }
    }
    constexpr double kOne = 1.2;  // busy CPUs of a program that is not parallel
    if (node.cpus >= 2 && node.gpus.empty() && node.cpu_max && *node.cpu_max <= kOne) {
      found.push_back(fmt::format("Of the {:.0f} CPUs of {}, no more than one was busy at a time.",
                                  node.cpus, name));
    }
  }
  found.insert(found.end(), report.faults.begin(), report.faults.end());
  return found;
}

std::string placement_line(const Report& report) {
  std::map<std::string, std::size_t> nodes;
  for (const NodeSummary& node : report.nodes) {
    nodes[node.placement] += node.placement.empty() ? 0 : 1;
  }
  const auto most =
      std::ranges::max_element(nodes, {}, [](const auto& pair) { return pair.second; });
  if (most == nodes.end() || most->second == 0) {
    return {};
  }
  const std::size_t all = report.nodes.size();
  return fmt::format("Placement{}: {}",
                     all == 1              ? std::string()
                     : most->second == all ? fmt::format(" on each of {} nodes", all)
                                           : fmt::format(" on {} of {} nodes", most->second, all),
                     printable(most->first));
}

std::string bytes_text(double bytes) {
  constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  constexpr double kStep = 1000;
  while (bytes >= kStep && unit + 1 < kUnits.size()) {
    bytes /= kStep;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes)
                   : fmt::format("{:.{}f} {}", bytes, bytes < 10 ? 1 : 0, kUnits.at(unit));
}

std::string time_text(std::int64_t ms) {
  const std::time_t seconds = ms / kSecondMs;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%F %T UTC", &parts);
  return {text.data(), size};
}

Result<> write_reports(const DataDirectory& directory, const Report& report) {
  CEEMS_TRY(directory.replace("report.json", to_json(report)));
  CEEMS_TRY(directory.replace("report.html", to_html(report)));
  return directory.replace("report.txt", to_text(report));
}

}  // namespace ceems::exporter::run
