#include "ingest/manager/openstack/openstack.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "config/section.h"
#include "ingest/manager/openstack/flavor_list.h"
#include "ingest/manager/openstack/people.h"
#include "ingest/manager/openstack/units.h"

namespace ceems::ingest {
namespace {

using openstack::Client;
using openstack::People;

constexpr std::size_t kMaxSeenFlavors = 20'000;
// The search for deleted servers starts this long before the window. Otherwise a server whose
// deletion Nova recorded late, or with a clock that is behind, would seem to run forever. The store
// counts a deletion that is reported twice only once.
constexpr std::int64_t kOverlapMs = std::int64_t{5} * 60'000;

class OpenstackManager final : public ResourceManager {
 public:
  OpenstackManager(std::string cluster_id,
                   OpenstackOptions options,
                   std::unique_ptr<openstack::Transport> transport,
                   TimeZone zone,
                   const Clock& clock)
      : cluster_id_(std::move(cluster_id)),
        zone_(zone),
        client_(std::move(options.endpoints), std::move(options.auth), std::move(transport), clock),
        people_(client_, clock, options.users_refresh_interval, options.default_domain_id),
        flavors_(client_, clock) {}

  void restore_names(std::optional<model::AccountNames> stored) override {
    people_.restore_names(std::move(stored));
  }
  [[nodiscard]] model::AccountNames new_names() const override { return people_.new_names(); }

  Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                               std::stop_token stop) override {
    const std::stop_callback cancel(stop, [this] { client_.cancel(); });
    CEEMS_TRY(found, client_.servers(zone_.local_with_offset(window.start_ms - kOverlapMs)));
    if (found.malformed > 0 && !malformed_) {
      log::warn("servers left out", {{"cluster_id", cluster_id_},
                                     {"servers", found.malformed},
                                     {"first", found.first_problem}});
    }
    malformed_ = found.malformed > 0;

    complete_flavors(found);

    People::Ids ids;
    for (const auto& server : found.servers) {
      ids.users.insert(server.user_id);
      ids.projects.insert(server.project_id);
    }
    people_result_ = people_.refresh(ids, stop);
    // A missing name would be stored as an empty one.
    if (!*people_result_ && !people_.knows(ids)) {
      return fail(people_result_->error());
    }

    history_.begin(window);
    std::vector<model::Unit> units;
    units.reserve(found.servers.size());
    for (const auto& server : found.servers) {
      auto lives = openstack::to_units(server, people_.project_name(server.project_id),
                                       people_.user_name(server.user_id), window, zone_, history_);
      std::ranges::move(lives, std::back_inserter(units));
    }
    flavors_.refresh(cluster_id_, stop);
    return units;
  }
  [[nodiscard]] std::optional<std::vector<model::Flavor>> flavors() const override {
    return flavors_.all();
  }

  /// Returns the result of the refresh in fetch_units(), or its error if it failed.
  Result<UsersAndProjects> fetch_users_projects(model::Window /*window*/,
                                                std::stop_token stop) override {
    const std::stop_callback cancel(stop, [this] { client_.cancel(); });
    if (!people_result_) {
      people_result_ = people_.refresh({}, stop);
    }
    if (!*people_result_) {
      return fail(people_result_->error());
    }
    return people_.everybody();
  }

 private:
  /// A server whose flavor was deleted has only its id in old versions of Nova. It then gets the
  /// flavor as it was; if that was never seen, it counts with 0 CPUs until Nova knows more.
  void complete_flavors(Client::Servers& found) {
    std::size_t missing = 0;
    std::string first;
    for (openstack::Server& server : found.servers) {
      if (server.flavor.id.empty() || seen_flavors_.size() >= kMaxSeenFlavors) {
        continue;
      }
      const auto key = std::pair(server.region, server.flavor.id);
      if (server.flavor.detailed) {
        seen_flavors_.insert_or_assign(key, server.flavor);
      } else if (const auto seen = seen_flavors_.find(key); seen != seen_flavors_.end()) {
        server.flavor = seen->second;
      } else if (missing++ == 0) {
        first = server.id;
      }
    }
    if (missing > 0 && !std::exchange(flavorless_, true)) {
      log::warn("the flavors of servers are not known; they count with 0 CPUs",
                {{"cluster_id", cluster_id_},
                 {"servers", missing},
                 {"first", printable(first)},
                 {"err", found.flavor_problem}});
    }
    flavorless_ = missing > 0;
  }

  std::string cluster_id_;
  TimeZone zone_;
  Client client_;
  People people_;
  openstack::FlavorList flavors_;
  openstack::ServerHistory history_;
  std::optional<Result<>> people_result_;  // of the last refresh
  bool malformed_ = false;                 // some servers were left out; logged once
  bool flavorless_ = false;                // the same for unknown flavors
  std::map<std::pair<std::string, std::string>, openstack::Flavor> seen_flavors_;
};

/// Reads an http or https URL and removes trailing slashes.
Result<std::string> read_url(const config::Node& node) {
  CEEMS_TRY(text, node.as_string());
  std::string_view url = trim(text);
  const std::size_t scheme = url.starts_with("https://") ? 8 : 7;
  if ((!url.starts_with("https://") && !url.starts_with("http://")) || url.size() == scheme ||
      url.find_first_of("?# ") != std::string_view::npos) {
    return fail(node.error("expected a URL such as https://cloud.example.org:5000"));
  }
  while (url.ends_with('/')) {
    url.remove_suffix(1);
  }
  return std::string(url);
}

Result<> read_endpoints(const config::Node& node, openstack::Endpoints& endpoints) {
  CEEMS_TRY(config::Section(node).only({"compute", "identity"}).done());
  for (const char* key : {"compute", "identity"}) {
    if (!node[key].present()) {
      return fail(node.error(fmt::format("{} is missing", key)));
    }
  }
  CEEMS_TRY(identity, read_url(node["identity"]));
  if (identity.ends_with("/v3")) {
    identity.resize(identity.size() - 3);
  }
  endpoints.identity = std::move(identity);
  const config::Node compute = node["compute"];
  if (!compute.is_map()) {
    CEEMS_TRY(url, read_url(compute));
    endpoints.compute[""] = std::move(url);
    return {};
  }
  for (const auto& [region, value] : compute.entries()) {
    CEEMS_TRY(url, read_url(value));
    endpoints.compute[region] = std::move(url);
  }
  if (endpoints.compute.empty()) {
    return fail(compute.error("expected at least one region"));
  }
  return {};
}

}  // namespace

Result<OpenstackOptions> parse_openstack_options(const config::Node& extra) {
  OpenstackOptions options;
  config::Section section(extra);
  section.duration("request_timeout", options.request_timeout)
      .duration("users_refresh_interval", options.users_refresh_interval)
      .text("default_domain_id", options.default_domain_id)
      .refuse(options.request_timeout <= std::chrono::milliseconds(0), "request_timeout",
              "must be more than 0s");
  if (!section.ok()) {
    return fail(section.done().error());
  }
  const config::Node endpoints = extra["api_service_endpoints"];
  if (!endpoints.present()) {
    return fail(extra.error("api_service_endpoints is missing"));
  }
  CEEMS_TRY(read_endpoints(endpoints, options.endpoints));
  const config::Node auth = extra["auth"];
  if (!auth.is_map()) {
    return fail((auth.present() ? auth : extra)
                    .error("expected a mapping 'auth', as Keystone takes it for a token"));
  }
  CEEMS_TRY(text, openstack::to_json(auth));
  options.auth = std::move(text);
  return options;
}

std::unique_ptr<ResourceManager> make_openstack(std::string cluster_id,
                                                OpenstackOptions options,
                                                std::unique_ptr<openstack::Transport> transport,
                                                TimeZone zone,
                                                const Clock& clock) {
  return std::make_unique<OpenstackManager>(std::move(cluster_id), std::move(options),
                                            std::move(transport), zone, clock);
}

namespace {

Result<std::unique_ptr<ResourceManager>> create_openstack(const ClusterConfig& config,
                                                          const ManagerContext& context) {
  const std::string where = "cluster " + config.cluster.id;
  if (!config.extra.present()) {
    return fail(ErrorCode::kInvalidArgument,
                "{}: manager openstack needs extra_config.api_service_endpoints and "
                "extra_config.auth",
                where);
  }
  CEEMS_TRY(options, parse_openstack_options(config.extra));
  CEEMS_TRY_IN(where, transport, openstack::http_transport(config.web, options.request_timeout));
  return make_openstack(config.cluster.id, std::move(options), std::move(transport), context.zone,
                        *context.clock);
}

}  // namespace

ManagerSpec openstack_manager() {
  return {.name = "openstack",
          .units = "servers (VMs)",
          .source = "Nova, Keystone",
          .reads_web = true,
          .extra_keys = {"api_service_endpoints", "auth", "request_timeout",
                         "users_refresh_interval", "default_domain_id"},
          .create = create_openstack};
}

}  // namespace ceems::ingest
