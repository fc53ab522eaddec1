#include "lb/service.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "lb/owner_source.h"
#include "net/server/request_memory.h"
#include "os/privileges.h"

namespace ceems::lb {
namespace {

constexpr std::size_t kMaxConnections = 20000;
/// Grafana requests the values of labels by GET, with the whole query in the URL.
constexpr std::size_t kMaxHeaderBytes = std::size_t{128} << 10U;
/// Longer than the 90 s for which Grafana keeps an idle connection.
constexpr std::chrono::seconds kIdleTimeout{120};
/// For reading a body. Long enough for slow clients.
constexpr std::chrono::seconds kReadTimeout{30};
/// In which a client must take the next 64 KiB of an answer.
constexpr std::chrono::seconds kWriteTimeout{10};
/// Of the bodies of all requests, those to both listeners together.
constexpr std::size_t kMaxRequestMemory = std::size_t{256} << 20U;
/// Nearly all queries are smaller. Their bodies are read before anything is decided.
constexpr std::size_t kSmallBodyBytes = std::size_t{16} << 10U;
/// Of this program's answers; backends' answers pass unchanged.
constexpr int kCompressionLevel = 5;

void cancel_health_requests(const Backends& backends) {
  for (const auto& [cluster, pool] : backends.pools()) {
    for (const Backend& backend : pool.backends()) {
      backend.client->cancel();
    }
  }
}

/// The options of one listener, without its address and handlers.
net::ServerOptions server_options(const ServiceOptions& options, const Config& config) {
  constexpr long kMinThreads = 2;
  constexpr long kMaxThreads = 64;
  net::ServerOptions server;
  server.systemd_socket = options.systemd_socket;
  server.web_config_file = options.web_config_file;
  server.around_files = os::read_as_root;
  server.threads = static_cast<int>(std::clamp(options.threads, kMinThreads, kMaxThreads));
  server.max_connections = kMaxConnections;
  server.max_header_bytes = kMaxHeaderBytes;
  server.max_body_bytes = config.has_owners() ? FrontendSnapshot::kMaxCheckedBodyBytes
                                              : FrontendSnapshot::kMaxBodyBytes;
  server.idle_timeout = kIdleTimeout;
  server.read_timeout = kReadTimeout;
  server.write_timeout = kWriteTimeout;
  server.gzip_level = kCompressionLevel;
  server.small_body_bytes = kSmallBodyBytes;
  server.queue_key = user_of;
  server.urgent = is_own_page;
  return server;
}

gate::GateRules gate_rules(gate::BackendType type, const Config& config, const Backends& backends) {
  gate::GateRules rules;
  rules.clusters = backends.clusters();
  for (const ClusterConfig& cluster : config.clusters) {
    if (!cluster.tsdb.empty()) {
      rules.servers.emplace(cluster.id, cluster.tsdb.front().kind);
    }
  }
  rules.confine = config.access.confine;
  rules.user_of = [names = config.names](std::string_view login) { return names.apply(login); };
  rules.pin_cluster = type == gate::BackendType::kTsdb && config.access.pin_cluster;
  rules.lifetimes = config.access.lifetimes;
  rules.tsdb.editors = config.access.editors;
  for (std::string prefix : config.access.path_prefixes) {
    rules.tsdb.prefixes.push_back(prefix);
    rules.profiles.prefixes.push_back(std::move(prefix));
  }
  rules.tsdb.selection.language.experimental = config.access.experimental;
  if (config.access.shared_metrics) {
    rules.tsdb.selection.shared_metrics = *config.access.shared_metrics;
  }
  if (type == gate::BackendType::kTsdb) {
    rules.tsdb.selection.hidden_labels = hidden_labels(backends);
  }
  return rules;
}

}  // namespace

std::vector<gate::BackendType> backend_types(const Config& config) {
  std::vector<gate::BackendType> types;
  const auto add = [&](bool there, gate::BackendType type) {
    if (there && std::ranges::find(types, type) == types.end()) {
      types.push_back(type);
    }
  };
  for (const ClusterConfig& cluster : config.clusters) {
    add(!cluster.tsdb.empty(), gate::BackendType::kTsdb);
    add(!cluster.profiles.empty(), gate::BackendType::kProfiles);
  }
  return types;
}

Result<std::unique_ptr<Service>> Service::create(const ServiceOptions& options,
                                                 const Config& config) {
  std::unique_ptr<Service> service(new Service(options.health, options.matchers));
  const auto types = backend_types(config);
  const auto memory = std::make_shared<net::RequestMemory>(kMaxRequestMemory);
  if (options.systemd_socket && types.size() > 1) {
    return fail(ErrorCode::kInvalidArgument,
                "--web.systemd-socket is for one type of backends; the configuration has {}",
                types.size());
  }
  if (!options.systemd_socket && options.listen_addresses.size() < types.size()) {
    return fail(ErrorCode::kInvalidArgument,
                "insufficient --web.listen-address. Expected {} got {}", types.size(),
                options.listen_addresses.size());
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    auto frontend = std::make_unique<Frontend>(types[i], service->metrics_);
    auto listening = server_options(options, config);
    if (!options.systemd_socket) {
      listening.listen_addresses = {options.listen_addresses[i]};
    }
    listening.request_memory = memory;
    // A request has a connection of its own and one to a backend. A part is left for the rest.
    listening.file_share = 2 * types.size() + 1;
    listening.on_dropped = [&metrics = service->metrics_.of(types[i])](net::Dropped what) {
      metrics.count_dropped(what);
    };
    listening.on_certificate = service->metrics_.on_certificate();
    listening.needs_body = [frontend = frontend.get()](const net::Request& request) {
      return frontend->needs_body(request);
    };
    listening.inline_handler = [frontend = frontend.get()](const net::Request& request,
                                                           net::Response& response) {
      return frontend->handle_inline(request, response);
    };
    CEEMS_TRY(server, net::Server::create(std::move(listening),
                                          [frontend = frontend.get()](const net::Request& request,
                                                                      net::Response& response) {
                                            frontend->handle(request, response);
                                          }));
    service->frontends_.push_back(std::move(frontend));
    service->servers_.push_back(std::move(server));
  }
  return service;
}

Service::~Service() {
  stop();
}

Result<> Service::apply(const Config& config) {
  const auto types = backend_types(config);
  const bool same = std::ranges::equal(types, frontends_, {}, {},
                                       [](const auto& frontend) { return frontend->type(); });
  if (!same) {
    return fail(ErrorCode::kInvalidArgument,
                "adding, removing or reordering types of backends requires a restart");
  }
  CEEMS_TRY(owners, open_owners(config));
  if (owners) {
    CEEMS_TRY(check_clusters(config, *owners));
    owners->reader.reset();
  } else {
    log::warn(
        "access control is OFF because neither ceems_api_server.data nor ceems_api_server.web is "
        "configured");
  }
  CEEMS_TRY_IN("ceems_lb.audit", audit, open_audit(config));
  std::vector<std::shared_ptr<const FrontendSnapshot>> snapshots;
  for (const auto& frontend : frontends_) {
    const auto before = frontend->snapshot();  // null at the start
    CEEMS_TRY(backends, Backends::create(frontend->type(), config,
                                         before ? before->backends.get() : nullptr));
    auto rules = gate_rules(frontend->type(), config, *backends);
    const auto unit_owners = owners ? owners->cached : nullptr;
    snapshots.push_back(std::make_shared<FrontendSnapshot>(
        frontend->type(), std::move(rules), unit_owners, std::move(backends), audit));
  }
  audit_ = std::move(audit);
  for (std::size_t i = 0; i < frontends_.size(); ++i) {
    if (const auto before = frontends_[i]->snapshot()) {
      const MutexLock lock(mutex_);
      draining_.push_back(before->backends);
    }
    frontends_[i]->publish(std::move(snapshots[i]));
  }
  if (health_) {
    health_->check_now();
  }
  if (probes_) {
    probes_->check_now();
  }
  return {};
}

Result<std::shared_ptr<audit::Log>> Service::open_audit(const Config& config) {
  if (!config.audit.enabled()) {
    return std::shared_ptr<audit::Log>();
  }
  if (audit_ && audit_->options() == config.audit) {
    audit_->reopen();
    return audit_;
  }
  CEEMS_TRY(log, audit::Log::open(config.audit, "ceems_lb", real_clock()));
  return std::shared_ptr<audit::Log>(std::move(log));
}

std::vector<HealthTarget> Service::health_targets() {
  std::vector<HealthTarget> all;
  std::set<const net::Upstream*> listed;
  const auto add = [&](const std::shared_ptr<const Backends>& backends, bool only_busy) {
    for (const auto& [cluster, pool] : backends->pools()) {
      for (const Backend& backend : pool.backends()) {
        if ((!only_busy || backend.upstream->in_flight() > 0) &&
            listed.insert(backend.upstream.get()).second) {
          all.push_back({backend.upstream, [backends, &backend] { return responds(backend); }});
        }
      }
    }
  };
  for (const auto& frontend : frontends_) {
    add(frontend->snapshot()->backends, false);
  }
  std::vector<std::shared_ptr<const Backends>> over;  // destroyed without the lock
  const MutexLock lock(mutex_);
  for (auto& backends : draining_) {
    if (backends.use_count() == 1) {  // no request holds them any more
      over.push_back(std::move(backends));
    } else {
      add(backends, true);
    }
  }
  std::erase(draining_, nullptr);
  return all;
}

std::vector<std::pair<gate::BackendType, std::shared_ptr<const Backends>>>
Service::controlled_backends() const {
  std::vector<std::pair<gate::BackendType, std::shared_ptr<const Backends>>> all;
  for (const auto& frontend : frontends_) {
    const auto snapshot = frontend->snapshot();
    if (snapshot->owners) {  // otherwise no request is confined
      all.emplace_back(frontend->type(), snapshot->backends);
    }
  }
  return all;
}

void Service::start() {
  health_ = std::make_unique<HealthChecker>([this] { return health_targets(); }, health_times_);
  if (matchers_interval_.count() > 0) {
    probes_ = std::make_unique<MatcherProbes>([this] { return controlled_backends(); },
                                              matchers_interval_);
  }
  for (const auto& server : servers_) {
    server->start();
  }
}

void Service::stop(std::chrono::milliseconds grace) {
  {
    std::vector<std::jthread> stopping;  // stopping a server takes as long as its longest request
    stopping.reserve(servers_.size());
    for (const auto& server : servers_) {
      stopping.emplace_back([&server, grace] { server->stop(grace); });
    }
  }
  for (const auto& frontend : frontends_) {
    if (const auto snapshot = frontend->snapshot()) {
      cancel_health_requests(*snapshot->backends);
    }
  }
  {
    const MutexLock lock(mutex_);
    for (const auto& backends : draining_) {
      cancel_health_requests(*backends);
    }
  }
  // It may hold the last reference to a backend, and connections of a backend must be closed before
  // the server whose thread they use.
  health_.reset();
  probes_.reset();
  servers_.clear();
}

std::vector<std::string> Service::addresses() const {
  std::vector<std::string> all;
  for (const auto& server : servers_) {
    const auto some = server->addresses();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<std::string> Service::listeners() const {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    for (const std::string& address : servers_[i]->addresses()) {
      all.push_back(fmt::format("{} {}", gate::type_name(frontends_[i]->type()), address));
    }
  }
  return all;
}

}  // namespace ceems::lb
