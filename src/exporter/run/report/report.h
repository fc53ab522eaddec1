#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/run/directory.h"
#include "exporter/run/report/summary.h"

namespace ceems::exporter::run {

/// What all nodes together did in equal parts of the run's time. Values that no node has are
/// absent. All vectors have the same length.
struct Course {
  double step_seconds = 0;
  std::vector<std::optional<double>> watts;
  std::vector<std::optional<double>> cpus;  ///< busy ones
  std::vector<std::optional<double>> memory_bytes;
  [[nodiscard]] bool empty() const { return watts.empty(); }
};

/// The whole run, from the summaries and job files of its nodes.
struct Report {
  std::vector<NodeSummary> nodes;    ///< by name
  std::vector<std::string> missing;  ///< nodes of the job that have no data
  std::vector<std::string> faults;   ///< what could not be read, in words
  Course course;

  [[nodiscard]] std::int64_t begin_ms() const;
  [[nodiscard]] double elapsed_seconds() const;
  [[nodiscard]] double total_joules() const;
  [[nodiscard]] std::map<std::string, double> joules() const;        ///< by domain
  [[nodiscard]] std::map<std::string, std::string> methods() const;  ///< of each domain
  [[nodiscard]] double cpu_seconds() const;
  /// Part of the CPUs' time that was used, 0…1; nothing without a duration.
  [[nodiscard]] std::optional<double> cpu_use() const;
  [[nodiscard]] std::optional<double> gpu_use() const;
  /// The most memory on one node.
  [[nodiscard]] std::optional<double> memory_peak_bytes() const;
  [[nodiscard]] std::optional<int> exit_status() const;
};

/// What was known at the start: the content of `run.json`.
struct RunFacts {
  std::string job = {};
  std::string name = {};
  std::string cluster = {};
  std::vector<std::string> nodes = {};  ///< empty if they are not known
};
std::string to_json(const RunFacts& facts);
Result<RunFacts> parse_facts(std::string_view text);
extern const std::string_view kFactsFile;      ///< "run.json"
extern const std::string_view kSummaryEnding;  ///< ".sum"
extern const std::string_view kSamplesEnding;  ///< ".cjf"

/// Reads everything in the directory. Files that cannot be read are named in Report::faults.
/// kNoData if no node has a summary.
Result<Report> read_report(const DataDirectory& directory);

/// Sentences on what is worth a look: missing data, unused GPUs and CPUs.
std::vector<std::string> remarks(const Report& report);

/// "Placement on each of 8 nodes: 4 ranks, each on 8 CPUs (2 a core)", as on most nodes. Empty if
/// no ranks were seen.
std::string placement_line(const Report& report);

/// "9.84 kWh (GPUs 8.02 measured, rest 1.82 modelled ±50 %)". No sign of precision that there is
/// not.
std::string energy_text(const Report& report);

/// The lines for the terminal.
std::vector<std::string> summary_lines(const Report& report);
/// The content of report.txt, report.json and report.html. Names are escaped.
std::string to_text(const Report& report);
std::string to_json(const Report& report);
std::string to_html(const Report& report);

/// "7.9 GB".
std::string bytes_text(double bytes);
/// "2026-11-30 00:10:07 UTC".
std::string time_text(std::int64_t ms);

/// Writes all three files.
Result<> write_reports(const DataDirectory& directory, const Report& report);

}  // namespace ceems::exporter::run
