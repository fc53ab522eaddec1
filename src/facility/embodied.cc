#include "facility/embodied.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"
#include "config/section.h"

namespace ceems::facility {
namespace {

constexpr double kHoursOfYear = 8760;
constexpr double kMaxYears = 30;

Result<EmbodiedClass> read_class(const config::Node& node, double years) {
  constexpr double kMaxKg = 1e6;
  EmbodiedClass made;
  config::Section section(node);
  section.only({"class", "clusters", "kgco2", "lifetime_years", "gpu_share", "source", "date"})
      .text("class", made.node_class)
      .list("clusters", made.clusters)
      .number("kgco2", made.kg)
      .number("lifetime_years", years)
      .number("gpu_share", made.gpu_share)
      .text("source", made.source)
      .text("date", made.date)
      .refuse(made.node_class.empty(), "class", "expected the class of the nodes, or \"*\"")
      .refuse(!(made.kg > 0 && made.kg <= kMaxKg), "kgco2",
              "expected the kg CO2e of making a node, above 0")
      .refuse(!(years > 0 && years <= kMaxYears), "lifetime_years",
              "expected years, above 0 and at most 30")
      .refuse(!(made.gpu_share >= 0 && made.gpu_share <= 1), "gpu_share",
              "expected the part of the GPUs, from 0 to 1")
      .refuse(made.source.empty() || printable(made.source) != made.source, "source",
              "expected one line on where the number is from");
  made.lifetime_hours = years * kHoursOfYear;
  CEEMS_TRY(section.done());
  return made;
}

/// Of a cluster: kg of CPUs with the rest, and of GPUs, and the hours that they had.
struct ClusterSum {
  double cpu_kg = 0, gpu_kg = 0, core_hours = 0, gpu_hours = 0;
};

double share_of(double reserved, double all, double kg) {
  return all > 0 ? kg * reserved / all : 0;
}

}  // namespace

const EmbodiedClass* EmbodiedOptions::find(const std::string& cluster,
                                           const std::string& node_class) const {
  const auto found = std::ranges::find_if(classes, [&](const EmbodiedClass& one) {
    return (one.node_class == node_class || one.node_class == "*") &&
           (one.clusters.empty() || std::ranges::find(one.clusters, cluster) != one.clusters.end());
  });
  return found == classes.end() ? nullptr : &*found;
}

Result<EmbodiedOptions> read_embodied(const config::Node& document) {
  EmbodiedOptions options;
  double years = 5;
  config::Section section(document);
  section.only({"lifetime_years", "classes"})
      .number("lifetime_years", years)
      .refuse(!(years > 0 && years <= kMaxYears), "lifetime_years",
              "expected years, above 0 and at most 30")
      .each("classes", [&](const config::Node& item) -> Result<> {
        CEEMS_TRY(made, read_class(item, years));
        options.classes.push_back(std::move(made));
        return {};
      });
  CEEMS_TRY(section.done());
  return options;
}

EmbodiedSum embodied_of(const EmbodiedOptions& options,
                        const std::vector<ClassHours>& classes,
                        const std::vector<Reserved>& reserved) {
  EmbodiedSum sum;
  std::map<std::string, ClusterSum> clusters;
  for (const ClassHours& hours : classes) {
    ClusterSum& cluster = clusters[hours.cluster];
    cluster.core_hours += hours.core_hours;
    cluster.gpu_hours += hours.gpu_hours;
    const EmbodiedClass* made = options.find(hours.cluster, hours.node_class);
    if (made == nullptr) {
      sum.unknown_node_hours += hours.node_hours;
      continue;
    }
    const double kg = made->kg * hours.node_hours / made->lifetime_hours;
    const double gpus = hours.gpu_hours > 0 ? made->gpu_share : 0;
    cluster.cpu_kg += kg * (1 - gpus);
    cluster.gpu_kg += kg * gpus;
    sum.total += kg;
    sum.classes.push_back({.hours = hours, .made = *made, .kg = kg});
  }
  double shared = 0;
  for (const Reserved& one : reserved) {
    const ClusterSum& cluster = clusters[one.cluster];
    if (cluster.cpu_kg + cluster.gpu_kg <= 0) {
      continue;  // not known, which is not 0
    }
    const double kg = share_of(one.core_hours, cluster.core_hours, cluster.cpu_kg) +
                      share_of(one.gpu_hours, cluster.gpu_hours, cluster.gpu_kg);
    shared += kg;
    sum.groups.push_back({.reserved = one, .kg = kg});
  }
  sum.unallocated = sum.total - shared;
  return sum;
}

}  // namespace ceems::facility
