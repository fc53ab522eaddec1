#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "report/report.h"
#include "store/reader.h"
#include "store/reports.h"

namespace ceems::api {

/// What a unit has marked (docs/marks.md), as the exporters of its nodes have counted it. Names are
/// untrusted.
struct UnitMarks {
  /// On one node.
  struct Region {
    double seconds = 0;  ///< in which it was open
    double count = 0;    ///< how often it ended
    /// While it was open, by domain, and while it was the innermost; not known of short passes.
    std::map<std::string, double, std::less<>> joules = {};
    report::Number self_joules = {};
  };
  struct Node {
    std::string name = {};
    std::map<std::string, Region, std::less<>> regions = {};
    /// Of the whole unit on this node, by domain.
    std::map<std::string, double, std::less<>> joules = {};
  };
  struct Result {
    std::string name = {}, unit = {};
    double n = 0;  ///< on all nodes
  };
  struct Merit {
    std::string name = {}, unit = {};
    std::size_t nodes = 0;     ///< that reported it
    double last = 0;           ///< mean of these nodes
    report::Number mean = {};  ///< over the time since it was first reported
  };
  std::vector<Node> nodes = {};  ///< by name
  std::vector<Result> results = {};
  std::vector<Merit> merits = {};
};

/// The domain "node" contains the others. Nothing if there are none.
report::Number all_joules(const std::map<std::string, double, std::less<>>& domains);
/// Of the whole unit on all nodes.
report::Number joules_of_unit(const UnitMarks& marks);

/// A region over all nodes that were in it. Each node counts the time from its own begin to its own
/// end, and its own energy in that time: a node that has ended earlier and waits for the others is
/// no longer in the region.
struct RegionSum {
  std::string name = {};
  double count = 0;         ///< on the node where it ended most often
  double seconds = 0;       ///< on the node that took longest
  double mean_seconds = 0;  ///< of the nodes
  report::Number joules = {}, self_joules = {};
  std::map<std::string, double, std::less<>> domains = {};  ///< without "node"
  report::Number watts = {};                                ///< mean of a node while it was in it
  /// The places in UnitMarks::nodes, the slowest first.
  std::vector<std::size_t> nodes = {};

  /// How much longer than the mean of the nodes the slowest one took, as a share.
  [[nodiscard]] report::Number longer() const;
};
/// All regions, the longest first.
std::vector<RegionSum> regions_of(const UnitMarks& marks);

inline constexpr std::size_t kMaxShownMarks = 32;
/// Adds phases, results and figures of merit to a report that has the energy of the unit: at most
/// kMaxShownMarks of each, the longest regions first.
void add_marks(const UnitMarks& marks, report::Report& report);

/// Adds what each result took in earlier runs, of which final reports are stored. Runs that cannot
/// be read are left out.
void compare_results(store::Reader& reader,
                     const std::vector<store::FamilyRun>& earlier,
                     report::Report& report);

}  // namespace ceems::api
