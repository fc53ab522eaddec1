#include "ingest/config.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "config/section.h"
#include "ingest/manager/manager.h"
#include "ingest/updater/updater.h"
#include "net/client/client_config.h"
#include "store/schema/tables.h"

namespace ceems::ingest {
namespace {

bool is_id(std::string_view text) {
  return has_only_words(text, "-_");
}

/// Reads `web` of a cluster or updater.
Result<> read_web(const config::Node& node,
                  const std::string& directory,
                  std::string& url,
                  net::ClientOptions& options) {
  if (!node.present()) {
    return {};
  }
  config::Section section(node);
  section.text("url", url);
  if (!section.ok()) {
    return section.done();
  }
  CEEMS_TRY(client, client_options(node, directory, {"url"}));
  options = std::move(client);
  return {};
}

Result<> read_cluster(const config::Node& node,
                      const std::string& directory,
                      std::set<std::string>& ids,
                      std::vector<ClusterConfig>& clusters) {
  ClusterConfig entry;
  config::Section section(node);
  section.only({"id", "manager", "updaters", "cli", "web", "extra_config"})
      .text("id", entry.cluster.id)
      .text("manager", entry.cluster.manager)
      .list("updaters", entry.cluster.updaters);
  const std::string& id = entry.cluster.id;
  const std::string& manager = entry.cluster.manager;
  section.refuse(ids.contains(id), "id", "duplicate ID found in clusters config: " + id);
  section.refuse(find_manager(manager) == nullptr, "manager",
                 "unknown resource manager found in the config: " + manager);
  section.refuse(!is_id(id), "id", "invalid cluster ID. It must contain only [a-zA-Z0-9-_]: " + id);
  config::Section cli(node["cli"]);
  cli.only({"path", "environment_variables"}).text("path", entry.cli_path);
  if (const config::Node variables = node["cli"]["environment_variables"]; variables.present()) {
    cli.refuse(!variables.is_map(), "environment_variables", "expected a mapping");
    for (const auto& [name, value] : variables.entries()) {
      auto text = value.as_string();
      if (text) {
        entry.cli_environment[name] = std::move(*text);
      } else {
        cli.also(fail(std::move(text).error()));
      }
    }
  }
  section.also(cli.done());
  section.also(read_web(node["web"], directory, entry.web_url, entry.web));
  entry.extra = node["extra_config"];
  ids.insert(id);
  clusters.push_back(std::move(entry));
  return section.done();
}

Result<> read_updater(const config::Node& node,
                      const std::string& directory,
                      std::set<std::string>& ids,
                      std::vector<UpdaterConfig>& updaters) {
  UpdaterConfig entry;
  config::Section section(node);
  section.only({"id", "updater", "cli", "web", "extra_config"})
      .text("id", entry.id)
      .text("updater", entry.kind);
  section.refuse(ids.contains(entry.id), "id",
                 "duplicate ID found in updaters config: " + entry.id);
  section.refuse(find_updater(entry.kind) == nullptr, "updater",
                 "unknown updater found in the config: " + entry.kind);
  section.refuse(!is_id(entry.id), "id",
                 "invalid updater ID. It must contain only [a-zA-Z0-9-_]: " + entry.id);
  section.also(read_web(node["web"], directory, entry.web_url, entry.web));
  entry.extra = node["extra_config"];
  ids.insert(entry.id);
  updaters.push_back(std::move(entry));
  return section.done();
}

template <typename Read>
Result<> read_list(const config::Node& node, const Read& read) {
  if (!node.present()) {
    return {};
  }
  if (!node.is_list()) {
    return fail(node.error("expected a list"));
  }
  std::set<std::string> ids;
  for (const config::Node& item : node.items()) {
    CEEMS_TRY(read(item, ids));
  }
  return {};
}

}  // namespace

Result<net::ClientOptions> client_options(const config::Node& node,
                                          const std::string& directory,
                                          std::initializer_list<std::string_view> others) {
  auto options = net::client_options(node, directory, others);
  if (options) {
    options->user_agent = "ceems_api_server";
  }
  return options;
}

bool has_custom_metrics(const std::vector<UpdaterConfig>& updaters) {
  return std::ranges::any_of(updaters, [](const UpdaterConfig& updater) {
    return std::ranges::any_of(store::kMapColumns, [&](const store::Column& column) {
      return column.reference > store::kOldestReference &&
             !updater.extra["queries"][column.name].entries().empty();
    });
  });
}

Result<> read_clusters(const config::Node& node,
                       const std::string& directory,
                       std::vector<ClusterConfig>& clusters) {
  return read_list(node, [&](const config::Node& item, auto& ids) {
    return read_cluster(item, directory, ids, clusters);
  });
}

Result<> read_updaters(const config::Node& node,
                       const std::string& directory,
                       std::vector<UpdaterConfig>& updaters) {
  return read_list(node, [&](const config::Node& item, auto& ids) {
    return read_updater(item, directory, ids, updaters);
  });
}

}  // namespace ceems::ingest
