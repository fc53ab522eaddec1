#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::exporter::run {

/// What the job did on one GPU of a node.
struct GpuSummary {
  std::string uuid = {};
  std::string index = {};
  std::optional<double> busy_seconds = {};
  std::optional<double> sm_seconds = {};
  std::optional<double> memory_peak_bytes = {};
};

/// What the job said about itself on a node (docs/marks.md).
struct RegionSummary {
  std::string name = {};
  double seconds = 0;                      ///< while it was open
  std::uint64_t count = 0;                 ///< ends
  std::optional<double> joules = {};       ///< absent if the region was too short
  std::optional<double> self_joules = {};  ///< while it was the innermost
};
struct ResultSummary {
  std::string name = {};
  std::string measure = {};  ///< unit of measurement, empty if not given
  double total = 0;
};
struct FomSummary {
  std::string name = {};
  std::string measure = {};
  double last = 0;
  double mean = 0;  ///< over the time since it was first set
  double seconds = 0;
};

/// The content of NODE.sum: what the job has used on a node so far. Unknown values are absent.
/// The job controls the texts, so they are data.
struct NodeSummary {
  std::string job = {};
  std::string name = {};     ///< of the job or of its program
  std::string cluster = {};  ///< empty if unknown
  std::string node = {};
  std::string unit = {};      ///< "cgroup" or "processes": what was read
  std::int64_t begin_ms = 0;  ///< since 1970
  std::int64_t end_ms = 0;
  bool ended = false;  ///< the last values; false while it runs, and after its end was not seen
  std::optional<int> exit_status = {};  ///< of the command, on the node where it was started
  double seconds = 0;                   ///< covered by samples
  double cpus = 0;                      ///< that the job may use
  double cpu_seconds = 0;
  std::optional<double> cpu_max = {};  ///< highest mean number of busy CPUs in ten seconds
  std::optional<double> memory_peak_bytes = {};
  std::optional<double> memory_limit_bytes = {};
  std::map<std::string, double> energy_joules = {};  ///< by domain
  std::map<std::string, double> idle_energy_joules =
      {};                                          ///< of these: of what was reserved and idle
  std::map<std::string, std::string> method = {};  ///< of each domain: measured, modelled, …
  std::vector<GpuSummary> gpus = {};
  std::vector<RegionSummary> regions = {};
  std::vector<ResultSummary> results = {};
  std::vector<FomSummary> foms = {};
  std::string placement = {};  ///< of its ranks, in words; empty if none were seen
  std::vector<std::string> placement_faults = {};
  std::uint64_t samples = 0;
  std::uint64_t gaps = 0;  ///< times that are missing between two samples

  [[nodiscard]] double total_joules() const;
  /// Of the domain; 0 if it is not known.
  [[nodiscard]] double joules(std::string_view domain) const;
  [[nodiscard]] double elapsed_seconds() const;
};

/// One line of JSON.
std::string to_json(const NodeSummary& summary);
/// Reads what to_json() writes. Unknown members are ignored. kParse if it is not JSON, if the
/// version is another one, or if a number is negative or not finite.
Result<NodeSummary> parse_summary(std::string_view text);

}  // namespace ceems::exporter::run
