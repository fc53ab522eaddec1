#include "tool/files/releases.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace ceems::tool {
namespace {

constexpr std::array<std::string_view, 4> kCustom{"total_custom_stats", "avg_custom_stats",
                                                  "min_custom_stats", "max_custom_stats"};

void add(std::vector<std::string>& notes, const config::Node& node, std::string_view what) {
  notes.push_back(fmt::format("line {}: {}: {}", node.line(), node.where(), what));
}

void note_clusters(const config::Node& clusters, std::vector<std::string>& notes) {
  for (const config::Node& cluster : clusters.items()) {
    const config::Node manager = cluster["manager"];
    const std::string name = manager.as_string().value_or("");
    if (name == "lsf") {
      add(notes, manager, "CEEMS before 0.14 has no manager lsf");
    } else if (!name.empty() && name != "slurm" && name != "openstack" && name != "k8s") {
      add(notes, manager, fmt::format("CEEMS has no manager {}", name));
    }
  }
}

void note_updaters(const config::Node& updaters, std::vector<std::string>& notes) {
  for (const config::Node& updater : updaters.items()) {
    for (const auto& [name, query] : updater["extra_config"]["queries"].entries()) {
      if (std::ranges::find(kCustom, name) != kCustom.end()) {
        add(notes, query, "CEEMS before 0.15 has no custom metrics");
      }
    }
  }
}

/// The queries of cacct, whose form changed with 0.16.
void note_queries(const config::Node& queries, std::vector<std::string>& notes) {
  if (queries.is_list()) {
    add(notes, queries, "CEEMS before 0.16 expects a mapping of names to queries");
    return;
  }
  if (!queries.is_map()) {
    return;
  }
  add(notes, queries, "CEEMS 0.16 and later expects a list of queries with name and kind");
  for (const auto& [name, query] : queries.entries()) {
    if (query.as_string().value_or("").find("{{") != std::string::npos) {
      add(notes, query, "CEEMS before 0.16 knows %s only, no {{.UUIDs}}");
    }
  }
}

}  // namespace

std::vector<std::string> release_notes(const config::Node& document) {
  std::vector<std::string> notes;
  note_clusters(document["clusters"], notes);
  note_updaters(document["updaters"], notes);
  note_queries(document["tsdb"]["queries"], notes);
  if (document["logging"].present()) {
    add(notes, document["logging"], "CEEMS before 0.12 writes no log of cacct");
  }
  return notes;
}

}  // namespace ceems::tool
