#include "tool/site/nodes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "base/text/node_list.h"
#include "base/time/time_text.h"

namespace ceems::tool {
namespace {

namespace json = boost::json;

constexpr std::chrono::milliseconds kNodesTimeout{10'000};
constexpr std::size_t kMaxNodeSeries = 500'000;
constexpr double kWeekSeconds = 7 * 86'400;
constexpr double kMsOfSecond = 1000;
constexpr double kSecondsOfMinute = 60;
constexpr std::size_t kNameWidth = 80;
constexpr std::size_t kModelsWidth = 160;

/// When nodes were last seen, by hours, with what they are. Exporters of other releases have no
/// ceems_node_info.
constexpr std::string_view kKnownNodes =
    "max by (job, instance, cluster, ceems_id, hostname, cpu_model, gpu_model) ("
    "timestamp(ceems_node_info) or max_over_time(timestamp(ceems_node_info)[7d:1h])"
    " or max_over_time(timestamp(ceems_exporter_build_info)[7d:1h]))";
/// What they report now: numbers by name. The label `of` keeps the parts apart.
constexpr std::string_view kReported =
    "label_replace(max by (job, instance, cluster, ceems_id) (ceems_exporter_build_info), \"of\", "
    "\"page\", \"\", "
    "\"\")"
    " or label_replace(max by (job, instance, cluster, ceems_id, collector) "
    "(ceems_scrape_collector_success),"
    " \"of\", \"collector\", \"\", \"\")"
    " or label_replace(max by (job, instance, cluster, ceems_id, domain, method) "
    "(ceems_energy_source_info),"
    " \"of\", \"energy\", \"\", \"\")"
    " or label_replace(count by (job, instance, cluster, ceems_id) (count by (job, instance, "
    "cluster, ceems_id, gpuuuid)"
    " (ceems_gpu_up == 1)), \"of\", \"GPUs\", \"\", \"\")"
    " or label_replace(count by (job, instance, cluster, ceems_id) (ceems_infiniband_state_id == "
    "4),"
    " \"of\", \"active links of the fabric\", \"\", \"\")";

using Instance = std::tuple<std::string, std::string, std::string>;  ///< job, instance, cluster
using Facet = std::pair<std::string, std::string>;  ///< the label `of`, and which one

struct SiteNode {
  std::string name;
  std::string job;                ///< of the TSDB
  std::string models;             ///< of CPU and GPU; empty: not known
  double models_s = 0;            ///< when that was
  double seen_s = 0;              ///< seconds since 1970
  bool reports = false;           ///< now
  std::map<Facet, double> has;    ///< 1 if it is there, or how many there are
  std::set<std::string> failing;  ///< collectors
};

/// Without its domain; an address has none.
std::string_view short_name(std::string_view name) {
  if (name.find_first_not_of("0123456789.:[]") == std::string_view::npos) {
    return name;
  }
  return name.substr(0, name.find_first_of(".:"));
}

Instance instance_of(const tsdb::Series& series) {
  const auto& labels = series.labels;
  return {std::string(labels.get("job")), std::string(labels.get("instance")),
          fmt::format("{}\n{}", labels.get("cluster"), labels.get("ceems_id"))};
}

/// "collector gpu", or "1 of 8 GPUs".
std::string lack_of(const SiteNode& node, const Facet& facet, double has, double expected) {
  const auto& [of, what] = facet;
  if (of == "collector") {
    return fmt::format("collector {}{}", what, node.failing.contains(what) ? " (it fails)" : "");
  }
  if (of == "energy") {
    return fmt::format("{} energy", what);
  }
  return fmt::format("{:.0f} of {:.0f} {}", expected - has, expected, of);
}

/// Appends the first ones, and how many more there are.
void add_named(std::vector<Finding> found, std::string_view what, std::vector<Finding>& to) {
  const std::size_t more = found.size() - std::min(found.size(), kNodesNamed);
  found.resize(found.size() - more);
  std::ranges::move(found, std::back_inserter(to));
  if (more > 0) {
    to.push_back({.state = State::kWarning,
                  .subject = "nodes",
                  .text = fmt::format("{} more {}", more, what),
                  .fix = "mend those above and run this again"});
  }
}

class NodeComparison {
 public:
  NodeComparison(tsdb::Client& tsdb, std::int64_t now_ms) : tsdb_(tsdb), now_ms_(now_ms) {}

  NodesReport run() {
    const auto known = ask(kKnownNodes);
    const auto reported = known ? ask(kReported) : std::nullopt;
    if (!reported) {
      return std::move(report_);
    }
    for (const tsdb::Series& series : *known) {
      if (const auto hostname = series.labels.get("hostname"); !hostname.empty()) {
        auto& newest = hostnames_[instance_of(series)];
        newest = std::max(newest, {series.samples.front().value, std::string(hostname)});
      }
    }
    for (const tsdb::Series& series : *known) {
      take_known(series);
    }
    for (const tsdb::Series& series : *reported) {
      take_reported(series);
    }
    find_silent();
    find_lacking();
    return std::move(report_);
  }

 private:
  using Key = std::pair<std::string, std::string>;  // the cluster, and the name of the node

  std::optional<std::vector<tsdb::Series>> ask(std::string_view query) {
    auto answer = tsdb_.query({.query = std::string(query),
                               .time_ms = now_ms_,
                               .timeout = kNodesTimeout,
                               .max_series = kMaxNodeSeries});
    if (!answer) {
      report_.findings.push_back(
          {.state = State::kWarning,
           .subject = "nodes",
           .text = fmt::format("they cannot be compared: {}", answer.error().message),
           .fix = "look at the log of the TSDB"});
      return std::nullopt;
    }
    std::erase_if(answer->series, [](const tsdb::Series& series) {
      return series.samples.empty() || !std::isfinite(series.samples.front().value);
    });
    return std::move(answer->series);
  }

  void take_known(const tsdb::Series& series) {
    const Instance instance = instance_of(series);
    const auto hostname = hostnames_.find(instance);
    const auto& [job, address, cluster] = instance;
    const std::string name = hostname != hostnames_.end() ? hostname->second.second : address;
    if (name.empty()) {
      return;
    }
    const Key key(cluster, name);
    keys_[instance] = key;
    SiteNode& node = nodes_[key];
    node.name = printable(name, kNameWidth);
    node.job = node.job.empty() ? job : std::min(node.job, job);
    const double seen = series.samples.front().value;
    node.seen_s = std::max(node.seen_s, seen);
    // A GPU that is lost is missing in the models, too.
    const std::string_view cpu = series.labels.get("cpu_model");
    const std::string_view gpu = series.labels.get("gpu_model");
    const double worth = seen + (gpu.empty() ? 0 : kWeekSeconds);
    if (!(cpu.empty() && gpu.empty()) && worth > node.models_s) {
      node.models_s = worth;
      node.models = printable(
          fmt::format("{}{}{}", cpu, cpu.empty() || gpu.empty() ? "" : ", ", gpu), kModelsWidth);
    }
  }

  void take_reported(const tsdb::Series& series) {
    const auto key = keys_.find(instance_of(series));
    const std::string of(series.labels.get("of"));
    if (key == keys_.end() || of.empty()) {
      return;
    }
    SiteNode& node = nodes_[key->second];
    node.reports = true;
    const double value = series.samples.front().value;
    if (of == "collector") {
      std::string collector = printable(series.labels.get("collector"), kNameWidth);
      node.has[{of, collector}] = std::max(node.has[{of, collector}], value);
      if (value == 0) {
        node.failing.insert(std::move(collector));
      }
    } else if (of == "energy") {
      node.has[{of, printable(fmt::format("{} {}", series.labels.get("method"),
                                          series.labels.get("domain")),
                              kNameWidth)}] = 1;
    } else if (of != "page") {
      double& had = node.has[{of, ""}];
      had = std::max(had, value);
    }
  }

  void find_silent() {
    std::set<std::pair<std::string, std::string_view>> reporting;  // by cluster
    for (const auto& [key, node] : nodes_) {
      if (node.reports) {
        reporting.emplace(key.first, short_name(node.name));
        report_.reporting.emplace(short_name(node.name));
      }
    }
    std::vector<Finding> found;
    for (const auto& [key, node] : nodes_) {
      if (node.reports || reporting.contains({key.first, short_name(node.name)})) {
        continue;
      }
      const double for_s = static_cast<double>(now_ms_) / kMsOfSecond - node.seen_s;
      found.push_back(
          {.state = State::kWarning,
           .subject = "nodes",
           .text = fmt::format("{} has reported nothing for up to {}", node.name,
                               duration_text(std::max(for_s, kSecondsOfMinute))),
           .fix = fmt::format("start ceems_exporter on {}, or add it to scrape_configs again; "
                              "after seven days it is forgotten",
                              node.name)});
    }
    add_named(std::move(found), "have reported nothing for a while", report_.findings);
  }

  void find_lacking() {
    std::map<std::pair<std::string, std::string>, std::vector<const SiteNode*>> classes;
    for (const auto& [key, node] : nodes_) {
      if (node.reports) {
        classes[{key.first + "\n" + node.job, node.models}].push_back(&node);
      }
    }
    std::vector<Finding> found;
    std::size_t compared = 0;
    std::size_t compared_classes = 0;
    for (const auto& [key, nodes] : classes) {
      if (nodes.size() >= kLeastNodesOfClass) {
        compared += nodes.size();
        ++compared_classes;
        compare(key.second, nodes, found);
      }
    }
    if (found.empty() && compared > 0) {
      report_.findings.push_back({.state = State::kOk,
                                  .subject = "nodes",
                                  .text = fmt::format("{} in {} classes report what their class "
                                                      "reports",
                                                      compared, compared_classes),
                                  .fix = {}});
    }
    add_named(std::move(found), "do not report what their class reports", report_.findings);
  }

  static void compare(const std::string& models,
                      const std::vector<const SiteNode*>& nodes,
                      std::vector<Finding>& found) {
    std::map<Facet, std::vector<double>> values;
    for (const SiteNode* node : nodes) {
      for (const auto& [facet, value] : node->has) {
        if (!models.empty() || facet.first == "collector") {
          values[facet].push_back(value);
        }
      }
    }
    std::map<const SiteNode*, std::vector<std::string>> lacks;
    const std::size_t quarter = (nodes.size() - 1) / 4;
    for (auto& [facet, sorted] : values) {
      sorted.resize(nodes.size(), 0);
      std::ranges::sort(sorted);
      for (const SiteNode* node : nodes) {
        const auto has = node->has.find(facet);
        const double own = has == node->has.end() ? 0 : has->second;
        // What three quarters of the others have: without its own value, those behind move up.
        const double expected = own <= sorted[quarter] ? sorted[quarter + 1] : sorted[quarter];
        if (own < expected) {
          lacks[node].push_back(lack_of(*node, facet, own, expected));
        }
      }
    }
    for (const SiteNode* node : nodes) {
      const auto lacking = lacks.find(node);
      if (lacking == lacks.end()) {
        continue;
      }
      const auto peer =
          std::ranges::find_if(nodes, [&lacks](const auto* one) { return !lacks.contains(one); });
      found.push_back(
          {.state = State::kWarning,
           .subject = "nodes",
           .text = fmt::format(
               "{} lacks {}, which most of the {} nodes {} report", node->name,
               fmt::join(lacking->second, ", "), nodes.size(),
               models.empty() ? "of job " + printable(node->job, kNameWidth) : "with " + models),
           .fix = fmt::format("run 'ceems_exporter doctor' on {}{}", node->name,
                              peer == nodes.end() ? ""
                                                  : fmt::format(" and compare its flags with {}'s",
                                                                (*peer)->name))});
    }
  }

  tsdb::Client& tsdb_;
  std::int64_t now_ms_;
  std::map<Instance, std::pair<double, std::string>> hostnames_;  // the newest, and when
  std::map<Instance, Key> keys_;
  std::map<Key, SiteNode> nodes_;
  NodesReport report_;
};

/// The names in `tags.nodelist` of a unit: a host list of SLURM, or names joined by '|'.
std::vector<std::string> nodes_of(const json::object& unit) {
  const json::value* tags = unit.if_contains("tags");
  const json::object* object = tags == nullptr ? nullptr : tags->if_object();
  const json::value* list = object == nullptr ? nullptr : object->if_contains("nodelist");
  if (list == nullptr || !list->is_string()) {
    return {};
  }
  std::string text(list->get_string());
  std::ranges::replace(text, '|', ',');
  return expand_node_list(text).value_or(std::vector<std::string>{});
}

}  // namespace

NodesReport examine_nodes(tsdb::Client& tsdb, std::int64_t now_ms) {
  return NodeComparison(tsdb, now_ms).run();
}

std::vector<Finding> compare_with_units(std::string_view answer,
                                        const std::set<std::string, std::less<>>& reporting) {
  boost::system::error_code error;
  const json::value document = json::parse(answer, error);
  const json::object* object = error ? nullptr : document.if_object();
  const json::value* data = object == nullptr ? nullptr : object->if_contains("data");
  std::map<std::string, std::set<std::string>> names;  // by cluster
  if (data != nullptr && data->is_array()) {
    for (const json::value& value : data->get_array()) {
      const json::object* unit = value.if_object();
      const json::value* cluster = unit == nullptr ? nullptr : unit->if_contains("cluster_id");
      if (cluster == nullptr || !cluster->is_string()) {
        continue;
      }
      for (const std::string& node : nodes_of(*unit)) {
        names[std::string(cluster->get_string())].emplace(short_name(node));
      }
    }
  }
  std::vector<Finding> findings;
  for (const auto& [cluster, nodes] : names) {
    std::vector<Finding> found;
    for (const std::string& name : nodes) {
      if (!reporting.contains(name)) {
        const std::string node = printable(name, kNameWidth);
        found.push_back(
            {.state = State::kWarning,
             .subject = "nodes",
             .text = fmt::format("{} reports nothing, but ran units of cluster {} in the last day",
                                 node, printable(cluster, kNameWidth)),
             .fix = fmt::format("install and start ceems_exporter on {}, and add it to "
                                "scrape_configs; 'ceems_exporter doctor' there says what is "
                                "missing",
                                node)});
      }
    }
    if (found.size() * 2 <= nodes.size()) {
      add_named(std::move(found), "ran units and report nothing", findings);
    }
  }
  return findings;
}

}  // namespace ceems::tool
