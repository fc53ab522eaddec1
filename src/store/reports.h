#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/facts.h"
#include "store/node_effects.h"
#include "store/report_key.h"

namespace ceems::store {

// The tables ceems_unit_reports and ceems_findings (docs/api/database.md, "Reports"). A window that
// stores the end of a unit queues its report in the same transaction; the finisher makes it.

enum class ReportState : std::uint8_t {
  kQueued,   ///< the unit has ended
  kPartial,  ///< made, but data of the unit may still come
  kFinal,    ///< made for the last time
};

/// A queued or partial report.
struct DueReport {
  ReportKey key = {};
  std::int64_t ended_at_ts = 0;
  ReportState state = ReportState::kQueued;
};

/// What rules compare of a run in the reports of later runs of its family.
struct RunNumbers {
  std::optional<double> mem_peak = {};          ///< bytes, of the largest node
  std::optional<double> cpu_used_max = {};      ///< most CPUs used for 10 s, summed over nodes
  std::optional<double> gpu_busy_seconds = {};  ///< summed over GPUs
  std::size_t gpus = 0, gpus_unused = 0;
};

/// A finding of a rule. Severity and confidence are numbered as in advice/.
struct FindingRow {
  std::string rule = {};
  int severity = 0, confidence = 0;
  std::int64_t runs = 1;
  std::optional<double> saves_kwh = {};
  std::string numbers = {};  ///< a JSON object
};

/// A report to store.
struct ReportRow {
  ReportKey key = {};
  std::int64_t ended_at_ts = 0;
  bool final = false;
  std::int64_t due_ms = 0;   ///< when a partial report is made again
  std::int64_t made_ms = 0;  ///< epoch milliseconds
  int version = 0;           ///< of the body
  std::optional<double> coverage = {};
  RunNumbers numbers = {};
  std::string body = {};  ///< opaque text
  std::vector<FindingRow> findings = {};
  Verdict verdict = Verdict::kUnknown;
  UnitOnNodes on = {};
};

/// What a unit used over its life, for its facts.
struct UnitStrip {
  ReportKey key = {};
  std::string text = {};  ///< of strip_text()
};

/// A report that is stored.
struct StoredReport {
  bool final = false;
  std::int64_t made_ms = 0;
  int version = 0;
  std::string body = {};
};

/// A run of the family of another one. Unknown values are absent.
struct FamilyRun {
  ReportKey key = {};
  std::int64_t ended_at_ts = 0;
  std::string state = {};
  std::optional<double> cpus = {}, memory = {}, nodes = {}, time_limit = {}, req_cpus = {};
  std::optional<double> cpu_use = {}, gpu_use = {};  ///< fractions of the allocation
  std::optional<double> kwh = {}, grams = {};
  std::int64_t created_at_ts = 0;
  bool measured = false;  ///< `numbers` are from its report
  RunNumbers numbers = {};
};

/// What all runs of a family have in common, as it is stored: the name is normalized (unit_name.h),
/// CPUs and GPUs are in thousandths.
struct Family {
  std::string user = {}, project = {}, name = {}, queue = {};
  std::int64_t nodes = 0, cpus = 0, gpus = 0;
};

/// Runs of the same user, project, partition, normalized name and size that completed, in the word
/// of any manager, or ran out of memory, newest first, without the run itself.
struct FamilyQuery {
  ReportKey run = {};
  TimeRange ended = {};
  std::size_t limit = 0;
  /// Runs of this family on the cluster of `run`, whose other members are empty.
  std::optional<Family> family = {};
};

/// Findings of the units that the filter selects, the newest end first. Its `advice` must be set.
struct FindingQuery {
  FactFilter filter = {};
  std::vector<std::string> rules = {};  ///< empty: all
  int least_severity = 0;
  std::size_t limit = 0;
};

/// A row of the answer. The name is as the filter lets it be seen.
struct UnitFinding {
  ReportKey key = {};
  std::int64_t ended_at_ts = 0;
  std::string name = {}, user = {}, project = {};
  std::string array = {};  ///< the id that SLURM shows, where it is not the uuid
  FindingRow finding = {};
};

}  // namespace ceems::store
