#include "lb/config.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "net/client_config.h"

namespace ceems::lb {
namespace {

using config::Node;

template <typename T>
Result<> take(const Node& node, T& target, Result<T> (Node::*read)() const) {
  if (!node.present()) {
    return {};
  }
  auto value = (node.*read)();
  if (!value) {
    return fail(std::move(value).error());
  }
  target = std::move(*value);
  return {};
}

/// The first error of several steps.
Result<> all_of(std::initializer_list<Result<>> steps) {
  for (const Result<>& step : steps) {
    if (!step) {
      return fail(Error(step.error()));
    }
  }
  return {};
}

Result<> only_client_keys(const Node& node, std::initializer_list<std::string_view> others) {
  for (const auto& [key, value] : node.entries()) {
    const auto known = net::client_option_keys();
    if (std::ranges::find(known, key) == known.end() &&
        std::ranges::find(others, key) == others.end()) {
      return fail(value.error("unknown key of an HTTP client"));
    }
  }
  return {};
}

/// `web`: a URL and the options of an HTTP client.
Result<> read_web(const Node& node,
                  const std::string& directory,
                  std::string& url,
                  net::ClientOptions& client,
                  std::initializer_list<std::string_view> others = {"url"}) {
  auto done = all_of({only_client_keys(node, others), take(node["url"], url, &Node::as_string)});
  if (!done) {
    return done;
  }
  auto options = net::client_options(node, directory);
  if (!options) {
    return fail(std::move(options).error());
  }
  client = std::move(*options);
  return {};
}

Result<> read_servers(const Node& list,
                      const std::string& directory,
                      std::vector<ServerConfig>& servers) {
  if (!list.present()) {
    return {};
  }
  if (!list.is_list()) {
    return fail(list.error("expected a list"));
  }
  for (const Node& item : list.items()) {
    ServerConfig server;
    auto done = all_of({item.only_keys({"web", "filter_labels"}),
                        read_web(item["web"], directory, server.url, server.client),
                        take(item["filter_labels"], server.filter_labels, &Node::as_string_list)});
    if (!done) {
      return done;
    }
    if (server.url.empty()) {
      return fail(item.error("a backend needs web.url"));
    }
    if (!server.client.proxy_url.empty() || server.client.proxy_from_environment) {
      return fail(item.error("backends cannot be reached through a proxy"));
    }
    servers.push_back(std::move(server));
  }
  // A request may go to any of them: what one hides all hide.
  std::set<std::string> hidden;
  for (const ServerConfig& server : servers) {
    hidden.insert(server.filter_labels.begin(), server.filter_labels.end());
  }
  for (ServerConfig& server : servers) {
    server.filter_labels.assign(hidden.begin(), hidden.end());
  }
  return {};
}

Result<> read_backend(const Node& node, const std::string& directory, Config& config) {
  ClusterConfig cluster;
  auto done = all_of({node.only_keys({"id", "tsdb", "pyroscope", "tsdb_urls", "pyroscope_urls"}),
                      take(node["id"], cluster.id, &Node::as_string),
                      read_servers(node["tsdb"], directory, cluster.tsdb),
                      read_servers(node["pyroscope"], directory, cluster.profiles)});
  if (!done) {
    return done;
  }
  if (cluster.id.empty()) {
    return fail(node.error("missing ID for backend(s)"));
  }
  if (cluster.tsdb.empty() && cluster.profiles.empty()) {
    return fail(node.error("missing TSDB and Pyroscope URL(s) for backend(s)"));
  }
  if (std::ranges::find(config.clusters, cluster.id, &ClusterConfig::id) != config.clusters.end()) {
    return fail(node["id"].error("ID that another backend has"));
  }
  config.clusters.push_back(std::move(cluster));
  return {};
}

Result<> read_strategy(const Node& node, Strategy& strategy) {
  if (node.is_null() || !node.present()) {
    return {};
  }
  const auto text = node.as_string();
  if (text && *text == "round-robin") {
    strategy = Strategy::kRoundRobin;
  } else if (text && *text == "least-connection") {
    strategy = Strategy::kLeastConnection;
  } else {
    return fail(node.error("invalid strategy: expected round-robin or least-connection"));
  }
  return {};
}

Result<> read_access(const Node& node, AccessConfig& access) {
  std::vector<std::string> shared;
  std::int64_t age = access.cache_age.count();
  auto done = all_of({node.only_keys({"confine", "pin_cluster", "path_prefixes", "shared_metrics",
                                      "experimental_functions", "cache_age"}),
                      take(node["confine"], access.confine, &Node::as_bool),
                      take(node["pin_cluster"], access.pin_cluster, &Node::as_bool),
                      take(node["path_prefixes"], access.path_prefixes, &Node::as_string_list),
                      take(node["shared_metrics"], shared, &Node::as_string_list),
                      take(node["experimental_functions"], access.experimental, &Node::as_bool),
                      take(node["cache_age"], age, &Node::as_duration_ms)});
  if (!done) {
    return done;
  }
  for (const std::string& prefix : access.path_prefixes) {
    if (!prefix.empty() && (!prefix.starts_with('/') || prefix.ends_with('/'))) {
      return fail(node["path_prefixes"].error("a prefix begins with '/' and does not end with it"));
    }
  }
  constexpr std::chrono::milliseconds kOldest{30000};
  access.cache_age = std::chrono::milliseconds(age);
  if (access.cache_age > kOldest) {
    return fail(node["cache_age"].error("at most 30s: who loses access must lose it soon"));
  }
  if (node["shared_metrics"].present()) {
    access.shared_metrics.emplace(shared.begin(), shared.end());
  }
  return {};
}

Result<> read_api_server(const Node& node, const std::string& directory, Config& config) {
  if (const Node web = node["web"]; web.present()) {
    // requests_limit: obsolete, of files that the API server shares.
    auto done =
        read_web(web, directory, config.api_url, config.api_client, {"url", "requests_limit"});
    if (!done) {
      return done;
    }
  }
  const Node data = node["data"];
  if (!data.is_map()) {
    return {};
  }
  std::string path = "data";
  auto done = all_of(
      {take(data["path"], path, &Node::as_string),
       take(data["database_url"], config.database_url, &Node::as_string),
       take(data["database_password_file"], config.database_password_file, &Node::as_string)});
  if (done && config.database_url.empty()) {
    config.data_path = std::move(path);
  }
  if (std::string& file = config.database_password_file; !file.empty() && file.front() != '/') {
    file.insert(0, directory.empty() ? "" : directory + "/");
  }
  return done;
}

/// Ids in `clusters`, if there are any, must hold those of the backends.
Result<> compare_ids(const Node& clusters, const Config& config) {
  std::vector<std::string> ids;
  if (clusters.is_list()) {
    for (const Node& item : clusters.items()) {
      std::string id;
      if (auto done = take(item["id"], id, &Node::as_string); !done) {
        return done;
      }
      if (!id.empty()) {
        ids.push_back(std::move(id));
      }
    }
  }
  for (const ClusterConfig& cluster : config.clusters) {
    if (!ids.empty() && std::ranges::find(ids, cluster.id) == ids.end()) {
      return fail(
          ErrorCode::kInvalidArgument,
          "unknown ID {} found in backends. IDs in ceems_lb.backends and in clusters config "
          "should match",
          cluster.id);
    }
  }
  return {};
}

}  // namespace

Result<Config> parse_config(const config::Node& document, const std::string& directory) {
  Config config;
  const Node lb = document["ceems_lb"];
  auto done = all_of(
      {document.only_keys({"ceems_api_server", "clusters", "updaters", "ceems_lb", "ceems_exporter",
                           "ceems_tool", "cacct", "redfish_proxy"}),
       lb.only_keys({"strategy", "backends", "access"}),
       read_strategy(lb["strategy"], config.strategy), read_access(lb["access"], config.access),
       read_api_server(document["ceems_api_server"], directory, config)});
  if (!done) {
    return fail(std::move(done).error());
  }
  if (lb["backends"].present() && !lb["backends"].is_list()) {
    return fail(lb["backends"].error("expected a list"));
  }
  if (lb["backends"].is_list()) {
    for (const Node& item : lb["backends"].items()) {
      if (auto read = read_backend(item, directory, config); !read) {
        return fail(std::move(read).error());
      }
    }
  }
  if (auto compared = compare_ids(document["clusters"], config); !compared) {
    return fail(std::move(compared).error());
  }
  return config;
}

}  // namespace ceems::lb
