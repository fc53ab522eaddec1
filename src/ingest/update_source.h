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

/// Creates the managers and updaters of the configuration. An updater id that is not configured and
/// an updater without the URL it needs are logged and left out, as in CEEMS 0.10.2. Updaters that
/// no cluster uses are created as well, so that mistakes in them are found, and thrown away.
/// Errors: those of create_manager() and create_updater().
Result<std::vector<UpdateSource>> create_sources(const std::vector<ClusterConfig>& clusters,
                                                 const std::vector<UpdaterConfig>& updaters,
                                                 const ManagerContext& context);

struct TsdbEndpoint {
  std::string url;
  net::ClientOptions web;
};

/// The TSDB that has the metrics of a cluster's units: that of its first updater with one. For a
/// manager that reads its units from a TSDB, web.url of the cluster comes before that, and
/// extra_config.tsdb replaces the URL of either. Nothing where there is none. kInvalidArgument with
/// file and line when extra_config.tsdb is not a text.
Result<std::optional<TsdbEndpoint>> tsdb_of_cluster(const ClusterConfig& cluster,
                                                    const std::vector<UpdaterConfig>& updaters);

}  // namespace ceems::ingest
