#include "lb/backends.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "net/client/transfer.h"
#include "net/unix_url.h"

namespace ceems::lb {
namespace {

constexpr std::size_t kMaxAttempts = 2;
constexpr std::chrono::seconds kHealthTimeout{10};
constexpr std::chrono::seconds kMatchersTimeout{2};  // a request waits for it
constexpr std::size_t kMaxMatchersBytes = std::size_t{8} << 20U;

/// Whether the header fields of the configuration can change or take time to find.
bool has_dynamic_headers(const net::ClientOptions& options) {
  const auto& basic = options.basic_auth;
  const auto& authorization = options.authorization;
  return options.oauth2 ||
         (basic && (!basic->username_file.empty() || !basic->password_file.empty())) ||
         (authorization && !authorization->credentials_file.empty()) ||
         std::ranges::any_of(options.headers,
                             [](const auto& header) { return !header.second.files.empty(); });
}

/// The addresses to which requests are sent, so that a health request needs no lookup. Empty for
/// numeric hosts and sockets.
std::vector<std::string> known_addresses(net::Upstream& server) {
  std::vector<std::string> all;
  if (!server.addresses().is_looked_up()) {
    return all;
  }
  const auto known = server.addresses().known();
  for (const net::SocketAddress& address : *known.list) {
    all.push_back(address.numeric());
  }
  return all;
}

/// Passes the servers of one configuration on to the next.
class PreviousBackends {
 public:
  explicit PreviousBackends(const Backends* before) : before_(before) {}

  Result<std::shared_ptr<net::Upstream>> reuse_or_create(const std::string& cluster,
                                                         net::UpstreamOptions options) {
    if (auto same = find_same(cluster, options)) {
      reused_.insert(same.get());
      return same;
    }
    const auto near = find_place(options);
    if (near) {
      options.addresses = near->shared_addresses();
    }
    auto made = net::Upstream::create(std::move(options));
    if (made && near) {
      (*made)->set_alive(near->alive());
      (*made)->set_hangs(near->hangs());
    }
    return made;
  }

 private:
  /// Only within a cluster and each server once, because load is counted per server and cluster.
  [[nodiscard]] std::shared_ptr<net::Upstream> find_same(
      const std::string& cluster, const net::UpstreamOptions& options) const {
    const Pool* const pool = before_ == nullptr ? nullptr : before_->find(cluster);
    if (pool != nullptr) {
      for (const Backend& backend : pool->backends()) {
        if (backend.upstream->options().same_server(options) &&
            !reused_.contains(backend.upstream.get())) {
          return backend.upstream;
        }
      }
    }
    return nullptr;
  }

  [[nodiscard]] std::shared_ptr<net::Upstream> find_place(const net::UpstreamOptions& place) const {
    if (before_ == nullptr) {
      return nullptr;
    }
    for (const auto& [id, pool] : before_->pools()) {
      for (const Backend& backend : pool.backends()) {
        const net::UpstreamOptions& known = backend.upstream->options();
        if (known.host == place.host && known.port == place.port &&
            known.unix_socket == place.unix_socket) {
          return backend.upstream;
        }
      }
    }
    return nullptr;
  }

  const Backends* before_;
  std::set<const net::Upstream*> reused_;
};

/// `options` configure the client of the server at `base`, which wants `query` in every URL.
Result<std::shared_ptr<MatcherSupport>> make_matcher_support(gate::BackendType type,
                                                             net::ClientOptions options,
                                                             const std::string& base,
                                                             const std::string& query) {
  options.timeout = kMatchersTimeout;
  options.max_response_bytes = kMaxMatchersBytes;
  auto client = net::Client::create(std::move(options));
  if (!client) {
    return fail(std::move(client).error());
  }
  return std::make_shared<MatcherSupport>(
      [type, base, query, client = std::shared_ptr<net::Client>(std::move(*client))](
          std::string_view method, std::string_view call) -> Result<std::string> {
        constexpr int kOk = 200;
        const bool tsdb = type == gate::BackendType::kTsdb;
        const bool posted = !tsdb || method == "query";
        std::string url =
            fmt::format("{}/{}/{}", base, tsdb ? "api/v1" : "querier.v1.QuerierService",
                        method == "values" ? "label/__name__/values" : method);
        for (const std::string_view part : {std::string_view(query), posted ? "" : call}) {
          url += part.empty() ? "" : (url.contains('?') ? "&" : "?");
          url += part;
        }
        CEEMS_TRY(answer,
                  !posted ? client->get(url)
                          : client->post(url, tsdb ? gate::kFormType : "application/json", call));
        if (answer.status != kOk) {
          return fail(ErrorCode::kUnavailable, "the server answered {}", answer.status);
        }
        return std::move(answer.body);
      });
}

Result<Backend> make_backend(gate::BackendType type,
                             const ServerConfig& config,
                             const std::string& cluster,
                             PreviousBackends& previous) {
  net::UnixUrl place{.socket = {}, .http = config.url};
  if (net::is_unix_url(config.url)) {
    CEEMS_TRY(read, net::parse_unix_url(config.url));
    place = std::move(read);
  }
  CEEMS_TRY(url, net::parse_url(place.http));
  net::UpstreamOptions options;
  options.host = url.host;
  if (options.host.starts_with('[')) {
    options.host = options.host.substr(1, options.host.size() - 2);
  }
  options.port = url.port;
  options.unix_socket = place.socket;
  options.use_tls = url.scheme == "https";
  options.tls = config.client.tls;
  CEEMS_TRY(upstream, previous.reuse_or_create(cluster, std::move(options)));
  net::ClientOptions client_options = config.client;
  client_options.unix_socket = std::move(place.socket);
  client_options.addresses = [server = upstream] { return known_addresses(*server); };
  client_options.timeout = kHealthTimeout;
  client_options.follow_redirects = false;
  CEEMS_TRY(client, net::Client::create(client_options));
  Backend backend;
  backend.upstream = std::move(upstream);
  backend.client = std::move(client);
  backend.url = config.url;
  backend.origin = url.origin();
  backend.base_path = url.path;
  while (backend.base_path.ends_with('/')) {
    backend.base_path.pop_back();
  }
  if (const auto question = url.full.find('?'); question != std::string::npos) {
    backend.base_query = url.full.substr(question + 1);
  }
  backend.filter_labels = config.filter_labels;
  CEEMS_TRY(matchers, make_matcher_support(type, std::move(client_options),
                                           backend.origin + backend.base_path, backend.base_query));
  backend.matchers = std::move(matchers);
  if (!has_dynamic_headers(config.client)) {
    CEEMS_TRY(own, backend.client->own_headers(backend.url));
    backend.own_headers = std::move(own);
  }
  return backend;
}

/// Sorts by requests in flight. It reads each count once, because other threads change them and
/// std::sort may read past the end if the order changes while it runs.
void sort_by_load(std::vector<const Backend*>& servers) {
  std::vector<std::pair<int, const Backend*>> counted;
  counted.reserve(servers.size());
  for (const Backend* const server : servers) {
    counted.emplace_back(server->upstream->in_flight(), server);
  }
  std::ranges::stable_sort(counted, {}, [](const auto& one) { return one.first; });
  std::ranges::transform(counted, servers.begin(), [](const auto& one) { return one.second; });
}

}  // namespace

bool Pool::has_static_headers() const {
  return std::ranges::all_of(
      backends_, [](const Backend& backend) { return backend.own_headers.has_value(); });
}

std::vector<const Backend*> Pool::pick() const {
  std::vector<const Backend*> live;
  const std::size_t count = backends_.size();
  const std::size_t first = next_.fetch_add(1, std::memory_order_relaxed) + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const bool rotate = strategy_ == Strategy::kRoundRobin;
    const Backend& backend = backends_[rotate ? (first + i) % count : i];
    if (backend.upstream->alive()) {
      live.push_back(&backend);
    }
  }
  if (strategy_ == Strategy::kLeastConnection) {
    sort_by_load(live);
  }
  if (live.size() > kMaxAttempts) {
    live.resize(kMaxAttempts);
  }
  return live;
}

bool drop_without_matchers(std::vector<const Backend*>& servers, std::string_view path) {
  const std::string_view method = path.substr(path.rfind('/') + 1);
  return std::erase_if(
             servers, [&](const Backend* server) { return !server->matchers->allows(method); }) > 0;
}

std::vector<const Backend*> with_filters(std::vector<const Backend*> servers) {
  std::erase_if(servers, [](const Backend* server) {
    // Filters in the URL of the configuration would allow more series than the request selects.
    return !server->base_query.empty() || !server->matchers->allows(MatcherSupport::kExtraFilters);
  });
  return servers;
}

bool responds(const Backend& backend) {
  const auto answer = backend.client->get(backend.origin + backend.base_path + "/-/healthy");
  return answer || answer.error().code != ErrorCode::kTimeout;
}

Result<std::unique_ptr<Backends>> Backends::create(gate::BackendType type,
                                                   const Config& config,
                                                   const Backends* before) {
  auto made = std::make_unique<Backends>();
  PreviousBackends previous(before);
  for (const ClusterConfig& cluster : config.clusters) {
    const auto& servers = type == gate::BackendType::kTsdb ? cluster.tsdb : cluster.profiles;
    std::vector<Backend> backends;
    backends.reserve(servers.size());
    for (const ServerConfig& server : servers) {
      CEEMS_TRY_IN("backend of " + cluster.id, backend,
                   make_backend(type, server, cluster.id, previous));
      backends.push_back(std::move(backend));
    }
    if (!backends.empty()) {
      made->pools_.try_emplace(cluster.id, config.strategy, std::move(backends));
    }
  }
  return made;
}

const Pool* Backends::find(const std::string& cluster) const {
  const auto found = pools_.find(cluster);
  return found == pools_.end() ? nullptr : &found->second;
}

std::vector<std::string> Backends::clusters() const {
  std::vector<std::string> ids;
  ids.reserve(pools_.size());
  for (const auto& [id, pool] : pools_) {
    ids.push_back(id);
  }
  return ids;
}

}  // namespace ceems::lb
