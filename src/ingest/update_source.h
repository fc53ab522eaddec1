#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ingest/config.h"
#include "ingest/manager/manager.h"
#include "ingest/updater/updater.h"
#include "model/unit.h"
#include "net/client/client.h"

namespace ceems::ingest {

/// A cluster with its manager and updaters, ready to run. Updaters are applied in order.
struct UpdateSource {
  struct NamedUpdater {
    std::string id;
    std::unique_ptr<Updater> updater;
  };
  model::Cluster cluster;
  std::unique_ptr<ResourceManager> manager;
  std::vector<NamedUpdater> updaters;
};

/// Creates the managers and updaters of the configuration. As in CEEMS 0.10.2, ids of updaters that
/// are not configured, and updaters without the URL that they need, are logged and left out.
/// Updaters that no cluster uses are created and destroyed again, to find errors in their options.
/// Errors: any of create_manager() and create_updater().
Result<std::vector<UpdateSource>> create_sources(const std::vector<ClusterConfig>& clusters,
                                                 const std::vector<UpdaterConfig>& updaters,
                                                 const ManagerContext& context);

struct TsdbEndpoint {
  std::string url;
  net::ClientOptions web;
};

/// Returns the TSDB with the metrics of a cluster's units: that of its first updater that has one.
/// If the manager reads the units from a TSDB, the cluster's web.url takes precedence.
/// extra_config.tsdb, with the cluster's web options, replaces either, so that no other server gets
/// the credentials of an updater. Nothing if there is none. kInvalidArgument with
/// file and line if extra_config.tsdb is not a string.
Result<std::optional<TsdbEndpoint>> tsdb_of_cluster(const ClusterConfig& cluster,
                                                    const std::vector<UpdaterConfig>& updaters);

}  // namespace ceems::ingest
