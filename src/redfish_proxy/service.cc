#include "redfish_proxy/service.h"

#include <linux/capability.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "config/yaml.h"
#include "net/server/web_config.h"
#include "os/privileges.h"

namespace ceems::redfish_proxy {
namespace {

constexpr std::size_t kMaxBodyBytes = std::size_t{64} << 10U;
constexpr std::size_t kMaxConnections = 20'000;
/// Longer than the 60 s at which most exporters are scraped at the latest.
constexpr std::chrono::seconds kIdleTimeout{90};

/// Whether the web configuration makes clients prove who they are.
bool asks_for_credentials(const std::string& web_config_file) {
  if (web_config_file.empty()) {
    return false;
  }
  const os::RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
  const auto document = config::load_yaml(web_config_file);
  const auto web = document
                       ? net::parse_web_config(*document, config::directory_of(web_config_file))
                       : fail(Error(document.error()));
  return web && (!web->basic_auth_users.empty() ||
                 web->tls.client_auth == net::ClientAuth::kRequireAndVerifyClientCert);
}

}  // namespace

bool is_exposed(std::string_view listener) {
  return !listener.starts_with("127.") && !listener.starts_with("[::1]:") &&
         !listener.starts_with("unix:");
}

Result<std::unique_ptr<Service>> Service::create(const ServiceOptions& options) {
  constexpr long kMinThreads = 2;
  constexpr long kMaxThreads = 64;
  std::unique_ptr<Service> service(new Service());
  service->web_config_file_ = options.web_config_file;
  net::ServerOptions server;
  server.listen_addresses = options.listen_addresses;
  server.systemd_socket = options.systemd_socket;
  server.web_config_file = options.web_config_file;
  server.around_files = os::read_as_root;
  server.threads = static_cast<int>(std::clamp(options.threads, kMinThreads, kMaxThreads));
  server.max_body_bytes = kMaxBodyBytes;
  server.max_connections = kMaxConnections;
  server.idle_timeout = kIdleTimeout;
  // A request has a connection of its own and one to a BMC. A part is left for the rest.
  server.file_share = 3;
  server.urgent = is_own_page;
  server.on_dropped = [proxy = service->proxy_.get()](net::Dropped what) {
    proxy->metrics().count_dropped(what);
  };
  server.on_certificate = service->proxy_->metrics().on_certificate();
  CEEMS_TRY(made, net::Server::create(std::move(server),
                                      [proxy = service->proxy_.get()](const net::Request& request,
                                                                      net::Response& response) {
                                        proxy->handle(request, response);
                                      }));
  service->server_ = std::move(made);
  return service;
}

Service::~Service() {
  stop();
}

Result<> Service::apply(Config config) {
  const auto listeners = addresses();
  const bool exposed = std::ranges::any_of(listeners, is_exposed);
  const bool credentials = asks_for_credentials(web_config_file_);
  if (config.follows_all_headers() && exposed && !credentials) {
    return fail(
        ErrorCode::kInvalidArgument,
        "without targets, clients choose their BMC by the header X-Redfish-Url, so anybody in the "
        "network could reach any server through this proxy. Configure redfish_proxy.targets or "
        "redfish_proxy.allowed_targets, or a --web.config.file with basic_auth_users, or listen on "
        "127.0.0.1");
  }
  if (config.follows_all_headers()) {
    log::warn(
        "no targets are configured: clients choose their BMC by the header X-Redfish-Url. "
        "Configure redfish_proxy.targets or redfish_proxy.allowed_targets");
  } else if (exposed && !credentials) {
    log::warn(
        "anybody in the network can use this proxy, because there is no --web.config.file "
        "with basic_auth_users");
  }
  CEEMS_TRY(snapshot, Snapshot::create(std::move(config)));
  log::info("configuration", {{"targets", snapshot->bmcs->targets()}});
  proxy_->publish(std::move(snapshot));
  return {};
}

void Service::start() {
  server_->start();
}

void Service::stop(std::chrono::milliseconds grace) {
  if (server_) {  // not if create() failed
    server_->stop(grace);
  }
}

}  // namespace ceems::redfish_proxy
