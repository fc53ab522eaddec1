#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "exporter/run/report/report.h"

namespace ceems::exporter::run {

/// A region of the program on all nodes, by the rules of docs/marks.md.
struct Phase {
  std::string region = {};
  std::uint64_t count = 0;  ///< on the node where it ended most often
  std::size_t nodes = 0;
  double seconds = 0;                 ///< on the node that took longest
  double share = 0;                   ///< of the run
  std::optional<double> joules = {};  ///< all nodes
  std::optional<double> self_joules = {};
  std::optional<double> watts = {};  ///< a node
  std::string slowest = {};          ///< node; empty on one node
  double longer = 0;                 ///< than the mean of the nodes, as a part of it
};

/// A result, or a figure of merit, of all nodes.
struct ResultSum {
  std::string name = {};
  std::string measure = {};
  double n = 0;
  std::optional<double> joules_per = {};  ///< of the whole run
};
struct FomMean {
  std::string name = {};
  std::string measure = {};
  double last = 0;
  double mean = 0;  ///< over time
};

std::vector<Phase> phases_of(const Report& report);  ///< the longest first
std::vector<ResultSum> results_of(const Report& report);
std::vector<FomMean> foms_of(const Report& report);

/// "step 1250 · 28.3 kJ each". One line for each result and figure of merit.
std::vector<std::string> result_lines(const Report& report);
/// The table of phases; empty if there are none.
std::string phases_text(const Report& report);
std::string phases_html(const Report& report);
/// The members `phases`, `results` and `fom`, as in the report of a site.
void write_marks(JsonWriter& json, const Report& report);

}  // namespace ceems::exporter::run
