#include "api/accounting/resources.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "config/section.h"

namespace ceems::api {
namespace {

constexpr double kMaxAmount = 1e12;
constexpr double kGiB = 1024.0 * 1024 * 1024;

/// A number above 0; of GPUs and prices also 0.
void read_amount(config::Section& section,
                 std::string_view key,
                 bool zero,
                 std::optional<double>& target) {
  if (!section.node()[key].present()) {
    return;
  }
  double number = 0;
  section.number(key, number)
      .refuse(!(number >= 0 && number <= kMaxAmount) || (number == 0 && !zero), key,
              zero ? "expected a number that is not negative" : "expected a number above 0");
  target = number;
}

Result<> read_node(const config::Node& node, Resource& resource) {
  config::Section section(node);
  section.only({"cpus", "memory_gib", "gpus"});
  read_amount(section, "cpus", false, resource.cpus);
  read_amount(section, "memory_gib", false, resource.memory);
  read_amount(section, "gpus", true, resource.gpus);
  if (resource.memory) {
    *resource.memory *= kGiB;
  }
  return section.done();
}

Result<> read_least(const config::Node& node, Resource& resource) {
  config::Section section(node);
  section.only({"nodes", "cpus", "gpus"});
  read_amount(section, "nodes", false, resource.least_nodes);
  read_amount(section, "cpus", false, resource.least_cpus);
  read_amount(section, "gpus", false, resource.least_gpus);
  return section.done();
}

Result<> read_resource(const config::Node& node, std::vector<Resource>& all) {
  Resource resource;
  config::Section section(node);
  section
      .only({"cluster", "site", "partition", "url", "for", "note", "nodes", "node", "time_limit",
             "core_hour", "gpu_hour", "least"})
      .text("cluster", resource.cluster)
      .text("site", resource.site)
      .text("partition", resource.partition)
      .text("url", resource.url)
      .text("for", resource.audience)
      .text("note", resource.note)
      .refuse(resource.site.empty() && resource.partition.empty(), "partition",
              "expected the name of a partition, or site with the name of another site")
      .refuse(!resource.site.empty() && !resource.cluster.empty(), "cluster",
              "a cluster is of this site: leave site or cluster out")
      .refuse(!resource.url.empty() && !resource.url.starts_with("https://") &&
                  !resource.url.starts_with("http://"),
              "url", "expected an address that begins with https:// or http://");
  read_amount(section, "nodes", false, resource.nodes);
  read_amount(section, "core_hour", true, resource.core_hour);
  read_amount(section, "gpu_hour", true, resource.gpu_hour);
  std::chrono::milliseconds limit{0};
  section.duration("time_limit", limit);
  if (limit.count() > 0) {
    resource.time_limit = std::chrono::duration<double>(limit).count();
  }
  if (section.ok()) {
    section.also(read_node(node["node"], resource));
  }
  if (section.ok()) {
    section.also(read_least(node["least"], resource));
  }
  section.refuse(!resource.site.empty() && !resource.least_nodes && !resource.least_cpus &&
                     !resource.least_gpus,
                 "least", "expected the size from which a job belongs to the other site");
  if (section.ok()) {
    all.push_back(std::move(resource));
  }
  return section.done();
}

}  // namespace

Result<std::vector<Resource>> read_resources(const config::Node& document) {
  std::vector<Resource> all;
  config::Section section(document);
  section.only({"resources"}).each("resources", [&all](const config::Node& resource) {
    return read_resource(resource, all);
  });
  if (!section.ok()) {
    return fail(section.done().error());
  }
  return all;
}

}  // namespace ceems::api
