#include "api/profiles/pyroscope.h"

#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/format.h>

#include "base/json.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "config/section.h"
#include "ingest/config.h"
#include "tsdb/client.h"

namespace ceems::api {
namespace {

constexpr std::chrono::milliseconds kTimeout = std::chrono::seconds(10);
constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;
constexpr std::string_view kCall = "/querier.v1.QuerierService/SelectMergeStacktraces";
/// What ceems_exporter and Pyroscope's agents record.
constexpr std::string_view kCpuTime = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// Whether the text means the same between quotes with and without the rules of escapes: older
/// versions of Pyroscope print selectors without quoting values again
/// (https://github.com/grafana/pyroscope/pull/4496).
bool is_plain(std::string_view text) {
  return !text.empty() && is_utf8(text) && std::ranges::none_of(text, [](char c) {
    return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
}

std::string request_body(const ProfileRequest& request, const std::string& selector) {
  std::string body;
  JsonWriter json(body, JsonEscape::kPlain);
  json.begin_object()
      .member("profileTypeID", kCpuTime)
      .member("labelSelector", selector)
      .member("start", request.from_ms)
      .member("end", request.to_ms)
      .member("maxNodes", static_cast<std::int64_t>(PyroscopeSource::kMaxNodes))
      .end_object();
  return body;
}

}  // namespace

Result<std::vector<ProfileServer>> read_profile_servers(const config::Node& server,
                                                        const std::string& directory) {
  std::vector<ProfileServer> servers;
  config::Section section(server);
  section.each("profiles", [&](const config::Node& item) -> Result<> {
    ProfileServer entry;
    config::Section inner(item);
    inner.only({"clusters", "web"}).list("clusters", entry.clusters);
    config::Section web(item["web"]);
    web.text("url", entry.url);
    inner.also(web.done()).refuse(entry.url.empty(), "web", "profiles need web.url");
    if (inner.ok()) {
      CEEMS_TRY(client, ingest::client_options(item["web"], directory, {"url"}));
      entry.web = std::move(client);
      servers.push_back(std::move(entry));
    }
    return inner.done();
  });
  if (!section.ok()) {
    return fail(section.done().error());
  }
  return servers;
}

Result<> check_profile_servers(const std::vector<ProfileServer>& servers,
                               const std::vector<std::string>& clusters,
                               const config::Node& server) {
  std::set<std::string> seen;
  for (const ProfileServer& entry : servers) {
    for (const std::string& cluster : entry.clusters.empty() ? clusters : entry.clusters) {
      const bool known = std::ranges::find(clusters, cluster) != clusters.end();
      if (!known || !seen.insert(cluster).second) {
        const std::string_view what =
            known ? "two servers have the cluster" : "no cluster is called";
        return fail(server["profiles"].error(fmt::format("{} '{}'", what, printable(cluster, 40))));
      }
    }
  }
  return {};
}

Result<std::unique_ptr<PyroscopeSource>> PyroscopeSource::create(
    std::vector<ProfileServer> servers,
    const std::vector<std::string>& clusters,
    const SeriesOptions& options) {
  Places places;
  std::map<std::string, std::size_t> sharing;  // number of clusters by URL
  for (ProfileServer& server : servers) {
    while (server.url.ends_with('/')) {
      server.url.pop_back();
    }
    server.web.timeout = std::min(server.web.timeout, kTimeout);
    server.web.max_response_bytes = kMaxBytes;
    CEEMS_TRY_IN("ceems_api_server.profiles", made, net::Client::create(std::move(server.web)));
    const std::shared_ptr<net::Client> client = std::move(made);
    for (const std::string& cluster : server.clusters.empty() ? clusters : server.clusters) {
      places[cluster] = {client, server.url, ""};
      ++sharing[server.url];
    }
  }
  for (auto& [cluster, place] : places) {
    // Jobs of two clusters may have the same ID, so what they share is never read without the
    // label.
    if (options.pin_cluster.value_or(false) || sharing[place.url] > 1) {
      place.cluster_label = options.cluster_label;
    }
  }
  return std::unique_ptr<PyroscopeSource>(new PyroscopeSource(std::move(places)));
}

Result<Flame> PyroscopeSource::profile(const ProfileRequest& request) {
  const auto found = places_.find(request.cluster_id);
  if (found == places_.end() || !is_plain(request.uuid) || request.to_ms <= request.from_ms) {
    return fail(ErrorCode::kInvalidArgument, "no profile of unit {} can be asked for",
                printable(request.uuid, 40));
  }
  const Place& place = found->second;
  std::string selector = fmt::format("{{service_name=\"{}\"", request.uuid);
  if (!place.cluster_label.empty()) {  // ids of clusters have no special characters
    selector += fmt::format(",{}=\"{}\"", place.cluster_label, request.cluster_id);
  }
  CEEMS_TRY_IN(
      "Pyroscope", response,
      place.client->post(place.url + std::string(kCall), "application/json",
                         request_body(request, selector + "}"), {{"Connect-Protocol-Version", "1"}},
                         tsdb::CancelScope::current()));
  if (response.status != 200) {
    const bool refused = response.status == 401 || response.status == 403;
    return fail(refused ? ErrorCode::kPermissionDenied : ErrorCode::kUnavailable,
                "Pyroscope: HTTP status {}: '{}'", response.status,
                printable(std::string_view(response.body).substr(0, 400), 200));
  }
  CEEMS_TRY_IN("Pyroscope", flame, parse_flame(response.body));
  keep_heaviest(flame, kMaxNodes);
  return flame;
}

void PyroscopeSource::cancel() {
  for (const auto& [cluster, place] : places_) {
    place.client->cancel();
  }
}

}  // namespace ceems::api
