#include "lb/service.h"

#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "lb/owner_source.h"

namespace ceems::lb {
namespace {

constexpr std::size_t kMaxConnections = 20000;
/// Grafana asks for values of labels by GET only, with the whole query in the URL.
constexpr std::size_t kMaxHeaderBytes = std::size_t{128} << 10U;
/// Longer than Grafana keeps a connection that it may use again (90 s).
constexpr std::chrono::seconds kIdleTimeout{120};
/// Of a body, and between pieces of an answer that the client takes: for slow but honest ones.
constexpr std::chrono::seconds kReadTimeout{30};
constexpr std::chrono::seconds kWriteTimeout{60};

void cancel_questions(const Backends& backends) {
  for (const auto& [cluster, pool] : backends.pools()) {
    for (const Backend& backend : pool.backends()) {
      backend.client->cancel();
    }
  }
}

gate::GateRules gate_rules(gate::BackendType type, const Config& config, const Backends& backends) {
  gate::GateRules rules;
  rules.clusters = backends.clusters();
  rules.confine = config.access.confine;
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

std::vector<gate::BackendType> kinds_of(const Config& config) {
  std::vector<gate::BackendType> kinds;
  const auto add = [&](bool there, gate::BackendType type) {
    if (there && std::ranges::find(kinds, type) == kinds.end()) {
      kinds.push_back(type);
    }
  };
  for (const ClusterConfig& cluster : config.clusters) {
    add(!cluster.tsdb.empty(), gate::BackendType::kTsdb);
    add(!cluster.profiles.empty(), gate::BackendType::kProfiles);
  }
  return kinds;
}

Result<std::unique_ptr<Service>> Service::create(const ServiceOptions& options,
                                                 const Config& config) {
  std::unique_ptr<Service> service(new Service);
  const auto kinds = kinds_of(config);
  if (options.systemd_socket && kinds.size() > 1) {
    return fail(ErrorCode::kInvalidArgument,
                "--web.systemd-socket is for one kind of backends; there are {}", kinds.size());
  }
  if (!options.systemd_socket && options.listen_addresses.size() < kinds.size()) {
    return fail(ErrorCode::kInvalidArgument,
                "insufficient --web.listen-address. Expected {} got {}", kinds.size(),
                options.listen_addresses.size());
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    auto frontend = std::make_unique<Frontend>(kinds[i], service->figures_);
    constexpr long kMinThreads = 2;
    constexpr long kMaxThreads = 64;
    net::ServerOptions server_options;
    if (options.systemd_socket) {
      server_options.systemd_socket = true;
    } else {
      server_options.listen_addresses = {options.listen_addresses[i]};
    }
    server_options.web_config_file = options.web_config_file;
    server_options.threads =
        static_cast<int>(std::clamp(options.threads, kMinThreads, kMaxThreads));
    server_options.max_connections = kMaxConnections;
    server_options.max_header_bytes = kMaxHeaderBytes;
    server_options.idle_timeout = kIdleTimeout;
    server_options.read_timeout = kReadTimeout;
    server_options.write_timeout = kWriteTimeout;
    server_options.max_body_bytes =
        config.has_owners() ? FrontendState::kMaxCheckedBodyBytes : FrontendState::kMaxBodyBytes;
    server_options.around_files = read_as_root;
    server_options.inline_handler = [frontend = frontend.get()](const net::Request& request,
                                                                net::Response& response) {
      return frontend->handle_inline(request, response);
    };
    auto server = net::Server::create(
        std::move(server_options),
        [frontend = frontend.get()](const net::Request& request, net::Response& response) {
          frontend->handle(request, response);
        });
    if (!server) {
      return fail(std::move(server).error());
    }
    service->frontends_.push_back(std::move(frontend));
    service->servers_.push_back(std::move(*server));
  }
  return service;
}

Service::~Service() {
  stop();
}

Result<> Service::apply(const Config& config) {
  const auto kinds = kinds_of(config);
  const bool same = std::ranges::equal(kinds, frontends_, {}, {},
                                       [](const auto& frontend) { return frontend->type(); });
  if (!same) {
    return fail(ErrorCode::kInvalidArgument,
                "kinds of backends that come, go or change places take a restart");
  }
  auto owners = open_owners(config);
  if (!owners) {
    return fail(std::move(owners).error());
  }
  if (*owners) {
    if (auto checked = check_clusters(config, **owners); !checked) {
      return checked;
    }
  } else {
    log::warn(
        "there is NO access control: neither ceems_api_server.data nor ceems_api_server.web is "
        "configured");
  }
  std::vector<std::shared_ptr<const FrontendState>> states;
  for (const auto& frontend : frontends_) {
    const auto before = frontend->state();  // null at the start
    auto backends =
        Backends::create(frontend->type(), config, before ? before->backends.get() : nullptr);
    if (!backends) {
      return fail(std::move(backends).error());
    }
    gate::Owners* const asked = *owners ? (*owners)->cached.get() : nullptr;
    auto state = std::make_shared<FrontendState>(
        frontend->type(), gate_rules(frontend->type(), config, **backends), asked);
    state->owners = std::shared_ptr<gate::Owners>(*owners, asked);
    state->backends = std::move(*backends);
    states.push_back(std::move(state));
  }
  for (std::size_t i = 0; i < frontends_.size(); ++i) {
    if (const auto before = frontends_[i]->state()) {
      const std::scoped_lock lock(mutex_);
      retired_.push_back(before->backends);
    }
    frontends_[i]->set_state(std::move(states[i]));
  }
  if (health_) {
    health_->check_now();
  }
  return {};
}

std::vector<HealthTarget> Service::health_targets() {
  std::vector<HealthTarget> all;
  std::set<const net::Upstream*> listed;
  const auto add = [&](const std::shared_ptr<const Backends>& backends, bool only_busy) {
    for (const auto& [cluster, pool] : backends->pools()) {
      for (const Backend& backend : pool.backends()) {
        if ((!only_busy || backend.upstream->in_flight() > 0) &&
            listed.insert(backend.upstream.get()).second) {
          all.push_back(
              {backend.upstream, [backends, &backend] { return answers_at_all(backend); }});
        }
      }
    }
  };
  for (const auto& frontend : frontends_) {
    add(frontend->state()->backends, false);
  }
  std::vector<std::shared_ptr<const Backends>> over;  // goes without the lock
  const std::scoped_lock lock(mutex_);
  for (auto& retired : retired_) {
    if (retired.use_count() == 1) {  // nobody else can take one any more
      over.push_back(std::move(retired));
    } else {
      add(retired, true);
    }
  }
  std::erase(retired_, nullptr);
  return all;
}

void Service::start() {
  health_ = std::make_unique<HealthChecker>([this] { return health_targets(); });
  for (const auto& server : servers_) {
    server->start();
  }
}

void Service::stop() {
  {
    std::vector<std::jthread> stopping;  // each takes as long as its longest request
    stopping.reserve(servers_.size());
    for (const auto& server : servers_) {
      stopping.emplace_back([&server] { server->stop(); });
    }
  }
  for (const auto& frontend : frontends_) {
    if (const auto state = frontend->state()) {
      cancel_questions(*state->backends);
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& retired : retired_) {
      cancel_questions(*retired);
    }
  }
  health_.reset();  // it may hold the last of a server whose connections belong to a listener
  servers_.clear();
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
