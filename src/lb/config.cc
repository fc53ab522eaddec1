#include "lb/config.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "config/section.h"
#include "model/protocol.h"
#include "net/client/client_config.h"

namespace ceems::lb {
namespace {

using config::Node;
using config::Section;

struct Kind {
  std::string_view name;
  gate::TsdbServer server;
};
constexpr std::array kKinds = {Kind{"prometheus", gate::TsdbServer::kPrometheus},
                               Kind{"thanos", gate::TsdbServer::kThanos},
                               Kind{"victoriametrics", gate::TsdbServer::kVictoriaMetrics}};

/// `web`: a URL and the options of an HTTP client.
Result<> read_web(const Node& node,
                  const std::string& directory,
                  std::string& url,
                  net::ClientOptions& client,
                  std::initializer_list<std::string_view> others = {"url"}) {
  Section section(node);
  section.text("url", url);
  auto options = net::client_options(node, directory, others);
  if (!options) {
    return section.also(fail(std::move(options).error())).done();
  }
  client = std::move(*options);
  return section.done();
}

/// What operators call the kinds of servers, and what a missing key means.
Result<> read_kind(const Node& node, gate::TsdbServer& kind) {
  std::string text = "prometheus";
  Section section(node);
  section.text("server", text);
  const auto* const found = std::ranges::find(kKinds, text, &Kind::name);
  section.refuse(found == kKinds.end(), "server", "expected prometheus, thanos or victoriametrics");
  kind = found == kKinds.end() ? gate::TsdbServer::kPrometheus : found->server;
  return section.done();
}

Result<> read_server(const Node& node,
                     const std::string& directory,
                     std::vector<ServerConfig>& servers) {
  ServerConfig server;
  Section section(node);
  section.only({"web", "filter_labels", "server"})
      .also(read_kind(node, server.kind))
      .also(read_web(node["web"], directory, server.url, server.client))
      .list("filter_labels", server.filter_labels)
      .refuse(server.url.empty(), "web", "a backend needs web.url")
      .refuse(!server.client.proxy_url.empty() || server.client.proxy_from_environment, "web",
              "a backend cannot be reached through a proxy");
  servers.push_back(std::move(server));
  return section.done();
}

/// Any server of a cluster may get a request, so all of them hide the labels that one hides.
void share_filters(std::vector<ServerConfig>& servers) {
  std::set<std::string> hidden;
  for (const ServerConfig& server : servers) {
    hidden.insert(server.filter_labels.begin(), server.filter_labels.end());
  }
  for (ServerConfig& server : servers) {
    server.filter_labels.assign(hidden.begin(), hidden.end());
  }
}

bool names_kind(const std::vector<ServerConfig>& servers) {
  return std::ranges::any_of(servers, [](const ServerConfig& server) {
    return server.kind != gate::TsdbServer::kPrometheus;
  });
}

/// Any server of a cluster may get a request, with the same parameters.
bool has_several_kinds(const std::vector<ServerConfig>& servers) {
  return std::ranges::adjacent_find(servers, std::ranges::not_equal_to(), &ServerConfig::kind) !=
         servers.end();
}

Result<> read_backend(const Node& node, const std::string& directory, Config& config) {
  ClusterConfig cluster;
  const auto into = [&directory](std::vector<ServerConfig>& servers) {
    return [&](const Node& item) { return read_server(item, directory, servers); };
  };
  Section section(node);
  section.only({"id", "tsdb", "pyroscope", "tsdb_urls", "pyroscope_urls"})
      .text("id", cluster.id)
      .each("tsdb", into(cluster.tsdb))
      .each("pyroscope", into(cluster.profiles))
      .refuse(names_kind(cluster.profiles), "pyroscope", "`server` is for TSDBs only")
      .refuse(has_several_kinds(cluster.tsdb), "tsdb",
              "the servers of a cluster must be of the same kind: name the same `server`")
      .refuse(cluster.id.empty(), "id", "missing ID for backend(s)")
      .refuse(cluster.tsdb.empty() && cluster.profiles.empty(), "",
              "missing TSDB and Pyroscope URL(s) for backend(s)")
      .refuse(std::ranges::find(config.clusters, cluster.id, &ClusterConfig::id) !=
                  config.clusters.end(),
              "id", "another backend has the same ID");
  share_filters(cluster.tsdb);
  config.clusters.push_back(std::move(cluster));
  return section.done();
}

Result<> read_strategy(const Node& node, Strategy& strategy) {
  std::string text = "round-robin";
  Section section(node);
  section.text("strategy", text)
      .refuse(text != "round-robin" && text != "least-connection", "strategy",
              "invalid strategy: expected round-robin or least-connection");
  strategy = text == "round-robin" ? Strategy::kRoundRobin : Strategy::kLeastConnection;
  return section.done();
}

Result<> read_access(const Node& node, AccessConfig& access) {
  const auto is_odd = [](const std::string& prefix) {
    return !prefix.empty() && (!prefix.starts_with('/') || prefix.ends_with('/'));
  };
  std::vector<std::string> shared;
  Section section(node);
  section
      .only({"confine", "pin_cluster", "path_prefixes", "shared_metrics", "experimental_functions",
             "cache_age", "lifetimes", "editors"})
      .boolean("confine", access.confine)
      .boolean("pin_cluster", access.pin_cluster)
      .boolean("lifetimes", access.lifetimes)
      .boolean("editors", access.editors)
      .list("path_prefixes", access.path_prefixes)
      .list("shared_metrics", shared)
      .boolean("experimental_functions", access.experimental)
      .duration("cache_age", access.cache_age)
      .refuse(std::ranges::any_of(access.path_prefixes, is_odd), "path_prefixes",
              "a prefix must begin with '/' and must not end with it")
      .refuse(access.cache_age > std::chrono::seconds(30), "cache_age",
              "expected at most 30s: a user who loses access must lose it soon");
  if (node["shared_metrics"].present()) {
    access.shared_metrics.emplace(shared.begin(), shared.end());
  }
  return section.done();
}

/// Refuses a section `ceems_api_server` whose keys for the source of owners are empty or commented
/// out. Otherwise a mistake there would switch off access control.
Result<> check_owners(const Node& node, const Config& config) {
  if (config.has_owners() || (!node.present() && !node.is_null())) {
    return {};
  }
  for (const auto& [key, what] : {std::pair("web", "url, the URL of the API server"),
                                  std::pair("data", "path, the directory of ceems.db")}) {
    if (const Node part = node[key]; part.present() || part.is_null()) {
      return fail(part.error(
          fmt::format("expected {}, because no other source of unit owners is configured", what)));
    }
  }
  return fail(
      node.error("expected data.path or web.url, the source of unit owners. To run without "
                 "access control, leave out the whole section"));
}

/// The credential of the service account. The other keys of `identity` belong to the API server.
Result<> read_service_account(const Node& node, const std::string& directory, Config& config) {
  ServiceAccount& account = config.service_account;
  const auto& basic = config.api_client.basic_auth;
  Section section(node);
  section.only({"token_file", "web_user"})
      .file("token_file", account.token_file, directory)
      .text("web_user", account.web_user)
      .refuse(!config.api_url.empty() && account.token_file.empty() && !account.web_user.empty() &&
                  (!basic || (basic->username_file.empty() && basic->username != account.web_user)),
              "web_user", "expected the same name as in ceems_api_server.web.basic_auth.username");
  return section.done();
}

/// The keys of ceems_api_server that this program uses.
Result<> read_api_server(const Node& node, const std::string& directory, Config& config) {
  Section section(node);
  // requests_limit is an obsolete key of files shared with the API server.
  const Node web = node["web"];
  const auto entries = web.entries();
  const bool configured = std::ranges::any_of(
      entries, [](const auto& entry) { return entry.first != "requests_limit"; });
  section.only(config::kApiServerKeys)
      .also(read_web(web, directory, config.api_url, config.api_client, {"url", "requests_limit"}))
      .refuse(configured && config.api_url.empty(), "web",
              "expected url, the URL of the API server");
  section.also(read_service_account(node["identity"]["service_account"], directory, config));
  CEEMS_TRY(names, config::NameMap::read(node["identity"]["header"]["map"], directory,
                                         model::kServiceAccount));
  config.names = std::move(names);
  const Node data = node["data"];
  std::string path = "data";
  section.also(Section(data)
                   .text("path", path)
                   .text("database_url", config.database_url)
                   .file("database_password_file", config.database_password_file, directory)
                   .refuse(path.empty(), "path", "expected the name of a directory")
                   .done());
  if (data.present() && config.database_url.empty()) {
    config.data_path = std::move(path);
  }
  return section.ok() ? check_owners(node, config) : section.done();
}

/// Checks that the ID of every backend is in `clusters`, unless that is empty.
Result<> compare_ids(const Node& document, const Config& config) {
  std::set<std::string> ids;
  Section section(document);
  section.each("clusters", [&ids](const Node& item) {
    std::string id;
    auto done = Section(item).text("id", id).done();
    ids.insert(std::move(id));
    return done;
  });
  ids.erase("");
  const auto unknown = std::ranges::find_if(
      config.clusters, [&](const ClusterConfig& cluster) { return !ids.contains(cluster.id); });
  if (section.ok() && !ids.empty() && unknown != config.clusters.end()) {
    return fail(ErrorCode::kInvalidArgument,
                "unknown ID {} found in backends. IDs in ceems_lb.backends and in clusters config "
                "should match",
                unknown->id);
  }
  return section.done();
}

}  // namespace

Result<Config> parse_config(const Node& document, const std::string& directory) {
  Config config;
  const Node lb = document["ceems_lb"];
  Section section(lb);
  auto audit = audit::read_options(lb["audit"], directory);
  section.only({"strategy", "backends", "access", "audit"})
      .also(read_strategy(lb, config.strategy))
      .also(read_access(lb["access"], config.access))
      .also(read_api_server(document["ceems_api_server"], directory, config))
      .each("backends", [&](const Node& item) { return read_backend(item, directory, config); });
  if (audit) {
    config.audit = std::move(*audit);
  } else {
    section.also(fail(std::move(audit).error()));
  }
  CEEMS_TRY(Section(document)
                .only(config::kTopLevelKeys)
                .also(section.done())
                .also(compare_ids(document, config))
                .done());
  return config;
}

}  // namespace ceems::lb
