#include "api/node_judge.h"

#include <algorithm>
#include <set>
#include <utility>

#include "api/report/unit_nodes.h"
#include "api/tsdb/fleet.h"
#include "base/log.h"
#include "store/nodes.h"

namespace ceems::api {
namespace {

constexpr std::chrono::minutes kJudgedKept{10};

void add_signs(const HardSigns& signs, std::vector<fleet::NodeHistory>& nodes) {
  for (const auto& [host, by_sign] : signs) {
    auto node = std::ranges::find(nodes, host, &fleet::NodeHistory::node);
    if (node == nodes.end()) {
      node = nodes.insert(nodes.end(), {.node = host});
    }
    for (std::size_t i = 0; i < fleet::kHardSigns; ++i) {
      const auto found = by_sign.find(std::string(name_of(static_cast<fleet::HardSign>(i))));
      if (found != by_sign.end()) {
        node->signs.at(i) = found->second;
      }
    }
  }
}

}  // namespace

std::vector<fleet::NodeHistory> node_histories(const std::vector<store::NodeEffect>& rows,
                                               const std::vector<store::KnownNode>& nodes) {
  std::map<std::string_view, fleet::NodeHistory> by_name;
  for (const store::KnownNode& node : nodes) {
    by_name.emplace(node.facts.node, fleet::NodeHistory{.node = node.facts.node,
                                                        .node_class = class_of(node.facts)});
  }
  // Of each family, two nodes on which it succeeded: one of them is another one.
  std::map<std::pair<std::string_view, std::string_view>, std::set<std::string_view>> succeeds;
  for (const store::NodeEffect& row : rows) {
    if (row.outcome == store::NodeOutcome::kEnded) {
      auto& on = succeeds[{row.username, row.family}];
      if (on.size() < 2) {
        on.insert(row.on.node);
      }
    }
  }
  for (const store::NodeEffect& row : rows) {
    const auto node = by_name.find(row.on.node);
    if (node == by_name.end()) {
      continue;
    }
    fleet::NodeHistory& history = node->second;
    if (row.on.effect) {
      history.effects.push_back(
          {.ended_ms = row.ended_ms, .user = row.username, .effect = *row.on.effect});
    }
    if (history.jobs.size() < fleet::kFailureJobs) {  // the newest come first
      bool unexplained = row.outcome == store::NodeOutcome::kNodeFailed;
      if (row.outcome == store::NodeOutcome::kFailed) {
        const auto on = succeeds.find({row.username, row.family});
        unexplained =
            on != succeeds.end() && std::ranges::any_of(on->second, [&row](std::string_view name) {
              return name != row.on.node;
            });
      }
      history.jobs.push_back(
          {.ended_ms = row.ended_ms, .user = row.username, .unexplained = unexplained});
    }
  }
  std::vector<fleet::NodeHistory> all;
  all.reserve(by_name.size());
  for (auto& [name, history] : by_name) {
    all.push_back(std::move(history));
  }
  return all;
}

Result<std::shared_ptr<const JudgedNodes>> NodeJudge::judge(const SiteCluster& cluster) {
  const auto now = sources_.clock->steady_now();
  {
    const MutexLock lock(mutex_);
    const auto found = kept_.find(cluster.id);
    if (found != kept_.end() && now < found->second.until) {
      return found->second.health;
    }
  }
  CEEMS_TRY(known, sources_.reader->known_nodes({cluster.id}));
  CEEMS_TRY(rows, sources_.reader->node_effects(
                      cluster.id, sources_.clock->now_ms() - store::kNodeEffectsKeptMs));
  auto nodes = node_histories(rows, known);
  bool without_signs = false;
  if (sources_.fleet != nullptr && cluster.series) {
    const auto signs = sources_.fleet->hard_signs(cluster.id);
    if (signs) {
      add_signs(*signs, nodes);
    } else {
      without_signs = true;
      log::warn("cannot read signs of broken hardware",
                {{"cluster_id", cluster.id}, {"err", signs.error().message}});
    }
  }
  auto health =
      std::make_shared<const JudgedNodes>(JudgedNodes{{fleet::judge_nodes(nodes)}, without_signs});
  const MutexLock lock(mutex_);
  for (const std::string& small : health->small_classes) {
    if (!small.empty() && !kept_.contains(cluster.id)) {  // said once
      log::info("too few nodes of a class to compare what they draw",
                {{"cluster_id", cluster.id}, {"class", small}});
    }
  }
  kept_[cluster.id] = {.until = now + (without_signs ? kFleetKept : kJudgedKept), .health = health};
  return health;
}

void NodeJudge::set_gauges() {
  const MutexLock lock(mutex_);
  const auto now = sources_.clock->steady_now();
  if (measuring_ || now < next_gauges_) {
    return;
  }
  next_gauges_ = now + kAllStragglersKept;
  measuring_ = true;
  measurer_ = std::jthread([this] {  // the one before has ended
    measure_all();
    const MutexLock ended(mutex_);
    measuring_ = false;
  });
}

void NodeJudge::measure_all() {
  auto& effects = sources_.registry
                      ->gauges("ceems_node_health_effect",
                               "Logarithm of what a sick node draws ÷ the median of its peers; not "
                               "there if it draws as they do.",
                               {"cluster", "hostname"})
                      .hide_zeros();
  auto& scores = sources_.registry
                     ->gauges("ceems_node_health_score",
                              "From 30 to 100: how much evidence there is that a node is sick.",
                              {"cluster", "hostname"})
                     .hide_zeros();
  for (const SiteCluster& cluster : sources_.site->clusters) {
    count_stragglers(cluster);
    const auto health = judge(cluster);
    if (!health) {
      log::warn("cannot judge the nodes",
                {{"cluster_id", cluster.id}, {"err", health.error().message}});
      continue;
    }
    auto& found = gauged_[cluster.id];
    for (auto& [host, values] : found) {  // unless it still is
      values = {};
    }
    for (const fleet::SickNode& node : (*health)->nodes) {
      found[node.node] = {node.drift ? node.drift->effect : 0, node.score};
    }
    for (const auto& [host, values] : found) {
      effects.with({cluster.id, host}).set(values.first);
      scores.with({cluster.id, host}).set(values.second);
    }
  }
}

/// The gauge stays as it is while the TSDB does not respond.
void NodeJudge::count_stragglers(const SiteCluster& cluster) {
  if (sources_.fleet == nullptr || !cluster.series) {
    return;
  }
  const auto units = sources_.fleet->all_stragglers(cluster.id);
  if (!units) {
    log::warn("cannot read the slow members of units",
              {{"cluster_id", cluster.id}, {"err", units.error().message}});
    return;
  }
  auto& counts = sources_.registry->gauges(
      "ceems_api_server_straggler_units",
      "Running units of which a GPU or node differs from its peers, by the kind of difference.",
      {"cluster_id", "kind"});
  for (std::size_t i = 0; i < fleet::kStragglerKinds; ++i) {
    const auto kind = static_cast<fleet::StragglerKind>(i);
    counts.with({cluster.id, fleet::name_of(kind)})
        .set(static_cast<double>(
            std::ranges::count_if(**units, [kind](const StragglersOfUnit& unit) {
              return std::ranges::find(unit.rows, kind, &fleet::Straggler::kind) != unit.rows.end();
            })));
  }
}

}  // namespace ceems::api
