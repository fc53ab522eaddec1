#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"

namespace ceems::facility {

/// What making a node of a class emitted (docs/report-your-year.md, "The hardware").
struct EmbodiedClass {
  std::string node_class = {};             ///< as the nodes of the database have it; "*": any other
  std::vector<std::string> clusters = {};  ///< empty: all
  double kg = 0;                           ///< CO2e of a node
  double lifetime_hours = 0;
  double gpu_share = 0;  ///< the part of it that its GPUs are
  std::string source = {}, date = {};
};

struct EmbodiedOptions {
  std::vector<EmbodiedClass> classes = {};

  /// The first that is of this class and cluster; nullptr if there is none.
  [[nodiscard]] const EmbodiedClass* find(const std::string& cluster,
                                          const std::string& node_class) const;
};

/// Reads embodied.yml. kInvalidArgument with file, line and key.
Result<EmbodiedOptions> read_embodied(const config::Node& document);

/// The nodes of a class in a period.
struct ClassHours {
  std::string cluster = {}, node_class = {};
  double nodes = 0;
  double node_hours = 0;                 ///< in which they were there
  double core_hours = 0, gpu_hours = 0;  ///< that they had to give
};

/// What a group had reserved on a cluster.
struct Reserved {
  std::string group = {}, cluster = {};
  double core_hours = 0, gpu_hours = 0;
};

/// Embodied emissions of a period, in kg: the emissions of making the nodes, by a straight line
/// over their lifetime (SCI, ISO/IEC 21031: M = TE · TS · RS).
struct EmbodiedSum {
  struct Class {
    ClassHours hours = {};
    EmbodiedClass made = {};
    double kg = 0;
  };
  struct Group {
    Reserved reserved = {};
    double kg = 0;
  };
  std::vector<Class> classes = {};
  std::vector<Group> groups = {};
  double total = 0;
  /// What no group had reserved, which is the site's: with the groups it makes the total.
  double unallocated = 0;
  double unknown_node_hours = 0;  ///< of classes without an entry
};

/// A group's share is its part of the core-hours, and of the GPU-hours, that all nodes of its
/// cluster had: the mean over the classes of the cluster. Groups of clusters without any known
/// class are left out.
EmbodiedSum embodied_of(const EmbodiedOptions& options,
                        const std::vector<ClassHours>& classes,
                        const std::vector<Reserved>& reserved);

}  // namespace ceems::facility
