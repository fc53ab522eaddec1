#include "service.h"

#include <linux/capability.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "gate/api_owners.h"
#include "gate/reader_owners.h"
#include "os/privileges.h"
#include "store/database.h"

namespace ceems::lb {
namespace {

constexpr std::chrono::seconds kOwnerTimeout{1};
constexpr std::size_t kMostConnections = 20000;
/// Grafana asks for values of labels by GET only, with the whole query in the URL.
constexpr std::size_t kLongestHeader = std::size_t{128} << 10U;
/// Longer than Grafana keeps a connection that it may use again (90 s).
constexpr std::chrono::seconds kIdleTimeout{120};
/// Of a body, and between pieces of an answer that the client takes: for slow but honest ones.
constexpr std::chrono::seconds kReadTimeout{30};
constexpr std::chrono::seconds kWriteTimeout{60};

void read_as_root(const std::function<void()>& read) {
  const os::RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
  read();
}

/// True also where nobody can tell: opening it then says what is wrong.
bool may_hold_database(const std::string& directory) {
  bool there = false;
  read_as_root([&] {
    std::error_code error;
    there = std::filesystem::exists(directory + "/ceems.db", error) || error;
  });
  return there;
}

/// What tells owners, and what it stands on.
struct OwnerSource {
  std::shared_ptr<store::Reader> reader;
  std::unique_ptr<gate::Owners> direct;
  std::unique_ptr<gate::Owners> cached;
};

Result<std::shared_ptr<OwnerSource>> open_owners(const Config& config) {
  auto source = std::make_shared<OwnerSource>();
  if (!config.has_owners()) {
    return std::shared_ptr<OwnerSource>();
  }
  // The data base comes first: it answers sooner, and without another program.
  const bool has_file = config.data_path && may_hold_database(*config.data_path);
  if (!config.database_url.empty() || has_file || config.api_url.empty()) {
    auto reader = store::open_reader({.directory = config.data_path.value_or(""),
                                      .url = config.database_url,
                                      .password_file = config.database_password_file,
                                      .around_open = read_as_root});
    if (!reader) {
      return fail(std::move(reader).error().with_context("who owns units cannot be told"));
    }
    source->reader = std::move(*reader);
    source->direct = gate::reader_owners(*source->reader);
  } else {
    net::ClientOptions options = config.api_client;
    options.timeout = kOwnerTimeout;
    options.connect_timeout = kOwnerTimeout;
    auto owners = gate::api_owners(config.api_url, std::move(options));
    if (!owners) {
      return fail(std::move(owners).error().with_context("ceems_api_server.web"));
    }
    source->direct = std::move(*owners);
  }
  source->cached =
      gate::cached_owners(*source->direct, real_clock(), {.age = config.access.cache_age});
  return source;
}

/// Ids of the clusters that whoever tells owners knows.
Result<std::vector<std::string>> known_clusters(const Config& config, OwnerSource& source) {
  if (!source.reader) {
    net::ClientOptions options = config.api_client;
    options.timeout = kOwnerTimeout;
    return gate::api_clusters(config.api_url, options);
  }
  auto rows = source.reader->clusters();
  if (!rows) {
    return fail(std::move(rows).error());
  }
  std::vector<std::string> ids;
  while (true) {
    const auto more = (*rows)->next();
    if (!more) {
      return fail(Error(more.error()));
    }
    if (!*more) {
      return ids;
    }
    ids.emplace_back((*rows)->text(0));
  }
}

Result<> check_clusters(const Config& config, OwnerSource& source) {
  const auto known = known_clusters(config, source);
  if (!known) {
    return fail(Error(known.error()).with_context("cannot check the ids of backends"));
  }
  for (const ClusterConfig& cluster : config.clusters) {
    if (std::ranges::find(*known, cluster.id) == known->end()) {
      return fail(ErrorCode::kInvalidArgument,
                  "unknown cluster ID: {}. Cluster IDs in CEEMS DB are {}", cluster.id,
                  fmt::join(*known, ","));
    }
  }
  return {};
}

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

Result<std::unique_ptr<Service>> Service::create(const CommandLine& line, const Config& config) {
  std::unique_ptr<Service> service(new Service);
  const auto kinds = kinds_of(config);
  if (line.systemd_socket && kinds.size() > 1) {
    return fail(ErrorCode::kInvalidArgument,
                "--web.systemd-socket is for one kind of backends; there are {}", kinds.size());
  }
  if (!line.systemd_socket && line.listen_addresses.size() < kinds.size()) {
    return fail(ErrorCode::kInvalidArgument,
                "insufficient --web.listen-address. Expected {} got {}", kinds.size(),
                line.listen_addresses.size());
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    auto frontend = std::make_unique<Frontend>(kinds[i], service->figures_);
    constexpr long kMinThreads = 2;
    constexpr long kMaxThreads = 64;
    net::ServerOptions options;
    if (line.systemd_socket) {
      options.systemd_socket = true;
    } else {
      options.listen_addresses = {line.listen_addresses[i]};
    }
    options.web_config_file = line.web_config_file;
    options.threads = static_cast<int>(std::clamp(line.threads, kMinThreads, kMaxThreads));
    options.max_connections = kMostConnections;
    options.max_header_bytes = kLongestHeader;
    options.idle_timeout = kIdleTimeout;
    options.read_timeout = kReadTimeout;
    options.write_timeout = kWriteTimeout;
    options.max_body_bytes =
        config.has_owners() ? FrontendState::kLongestCheckedBody : FrontendState::kLongestBody;
    options.around_files = read_as_root;
    options.at_once = [frontend = frontend.get()](const net::Request& request,
                                                  net::Response& response) {
      return frontend->handle_at_once(request, response);
    };
    auto server = net::Server::create(
        std::move(options),
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
  look_now_.ask();
  return {};
}

std::vector<Watched> Service::watched() {
  std::vector<Watched> all;
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
  health_ = std::jthread([this](const std::stop_token& stop) {
    keep_watch(stop, [this] { return watched(); }, {}, &look_now_);
  });
  for (const auto& server : servers_) {
    server->start();
  }
}

void Service::stop() {
  health_.request_stop();
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
  health_ = {};  // it may hold the last of a server whose connections belong to a listener
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
