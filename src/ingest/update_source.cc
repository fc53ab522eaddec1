#include "ingest/update_source.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace ceems::ingest {
namespace {

const UpdaterConfig* find_config(const std::vector<UpdaterConfig>& updaters,
                                 const std::string& id) {
  const auto found = std::ranges::find(updaters, id, &UpdaterConfig::id);
  return found == updaters.end() ? nullptr : &*found;
}

Result<const UpdaterSpec*> spec_of(const UpdaterConfig& config) {
  const UpdaterSpec* spec = find_updater(config.kind);
  if (spec == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "unknown updater found in the config: {}",
                config.kind);
  }
  return spec;
}

Result<> check_unused(const std::vector<ClusterConfig>& clusters,
                      const UpdaterConfig& updater,
                      const Clock& clock) {
  const bool used = std::ranges::any_of(clusters, [&updater](const ClusterConfig& config) {
    return std::ranges::find(config.cluster.updaters, updater.id) != config.cluster.updaters.end();
  });
  if (used) {
    return {};
  }
  CEEMS_TRY(spec, spec_of(updater));
  auto made = create_updater(*spec, updater, clock);
  return made ? Result<>() : fail(std::move(made).error());
}

Result<> add_updater(const std::vector<UpdaterConfig>& updaters,
                     const std::string& id,
                     const Clock& clock,
                     UpdateSource& source) {
  const UpdaterConfig* config = find_config(updaters, id);
  if (config == nullptr) {
    log::error("unknown updater is left out", {{"cluster_id", source.cluster.id}, {"updater", id}});
    return {};
  }
  CEEMS_TRY(spec, spec_of(*config));
  if (spec->needs_url && config->web_url.empty()) {
    log::warn("updater without url is disabled",
              {{"cluster_id", source.cluster.id}, {"updater", id}});
    return {};
  }
  CEEMS_TRY(made, create_updater(*spec, *config, clock));
  source.updaters.push_back({.id = id, .updater = std::move(made)});
  return {};
}

Result<UpdateSource> create_source(ClusterConfig config,
                                   const std::vector<UpdaterConfig>& updaters,
                                   const ManagerContext& context) {
  UpdateSource source{.cluster = config.cluster, .manager = nullptr, .updaters = {}};
  for (const auto& id : config.cluster.updaters) {
    CEEMS_TRY(add_updater(updaters, id, *context.clock, source));
  }
  const ManagerSpec* spec = find_manager(config.cluster.manager);
  if (spec == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "unknown resource manager found in the config: {}",
                config.cluster.manager);
  }
  if (spec->units_from_tsdb) {
    CEEMS_TRY(tsdb, tsdb_of_cluster(config, updaters));
    TsdbEndpoint endpoint = std::move(tsdb).value_or(TsdbEndpoint{});
    config.web_url = std::move(endpoint.url);
    config.web = std::move(endpoint.web);
  }
  CEEMS_TRY(made, create_manager(*spec, config, context));
  source.manager = std::move(made);
  return source;
}

}  // namespace

Result<std::vector<UpdateSource>> create_sources(const std::vector<ClusterConfig>& clusters,
                                                 const std::vector<UpdaterConfig>& updaters,
                                                 const ManagerContext& context) {
  for (const auto& updater : updaters) {
    CEEMS_TRY(check_unused(clusters, updater, *context.clock));
  }
  std::vector<UpdateSource> sources;
  for (const auto& cluster : clusters) {
    CEEMS_TRY(source, create_source(cluster, updaters, context));
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<std::optional<TsdbEndpoint>> tsdb_of_cluster(const ClusterConfig& cluster,
                                                    const std::vector<UpdaterConfig>& updaters) {
  TsdbEndpoint found;
  for (const auto& id : cluster.cluster.updaters) {
    const UpdaterConfig* updater = find_config(updaters, id);
    const UpdaterSpec* spec = updater != nullptr ? find_updater(updater->kind) : nullptr;
    if (spec != nullptr && spec->web_is_tsdb && !updater->web_url.empty()) {
      found = {.url = updater->web_url, .web = updater->web};
      break;
    }
  }
  const ManagerSpec* manager = find_manager(cluster.cluster.manager);
  if (manager != nullptr && manager->units_from_tsdb) {
    if (found.url.empty() || !cluster.web_url.empty()) {
      found = {.url = cluster.web_url, .web = cluster.web};
    }
    if (const auto node = cluster.extra["tsdb"]; node.present()) {
      CEEMS_TRY(text, node.as_string());
      found = {.url = std::move(text), .web = cluster.web};
    }
  }
  return found.url.empty() ? std::nullopt : std::optional(std::move(found));
}

}  // namespace ceems::ingest
