#include "redfish_proxy/proxy.h"

#include <linux/capability.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "config/yaml.h"
#include "net/server/web_config.h"
#include "os/privileges.h"

namespace ceems::redfish_proxy {
namespace {

using std::chrono::steady_clock;
using Verdict = ResourcePolicy::Verdict;
using Rate = ClientRates::Verdict;

constexpr std::string_view kTargetHeader = "X-Redfish-Url";
constexpr std::string_view kUserAgent = "ceems/redfish_proxy";
constexpr std::string_view kHealthPath = "/health";
constexpr std::string_view kMetricsPath = "/metrics";
constexpr std::string_view kNoTarget = "failed to find redfish target";
/// A BMC that hangs collects requests until they time out. More would not help.
constexpr int kMaxPerBmc = 64;
/// Of them, for clients other than the BMC's own node: for all together, and for each. No client
/// gets more than it leaves free, so a few cannot take all places from another one.
constexpr std::size_t kMaxOfOthers = 48;
constexpr std::size_t kMaxOfEach = 16;

/// The statuses and texts of the reference, which end without a line end.
void answer_text(net::Response& response, int status, std::string_view text) {
  net::plain_text(response, status, "");
  response.body = text;
}

/// Fields that are never passed on: credentials of this proxy, what the relay sets, and fields by
/// which some servers choose another method, path or host than the one that was checked.
bool is_never_passed(std::string_view low) {
  constexpr std::array<std::string_view, 14> kNames{
      "host",       "content-length",    "authorization",          "x-redfish-url",
      "user-agent", "x-forwarded-for",   "x-http-method-override", "x-http-method",
      "cookie",     "x-method-override", "x-original-url",         "x-rewrite-url",
      "forwarded",  "x-forwarded-host"};
  return std::ranges::find(kNames, low) != kNames.end();
}

std::string forwarded_for(const net::Request& request) {
  std::string all;
  for (const auto& [name, value] : request.headers) {
    if (same_in_any_case(name, "X-Forwarded-For")) {
      all += value + ", ";
    }
  }
  return all + request.remote_address;
}

net::Headers headers_for(const net::Request& request, const net::Headers& own) {
  net::Headers headers;
  const net::HopFields hop(request.headers);
  for (const auto& [name, value] : request.headers) {
    const std::string low = to_lower(name);
    if (!hop.contains(low) && !is_never_passed(low) && net::find_header(own, name) == nullptr) {
      headers.emplace_back(name, value);
    }
  }
  headers.emplace_back("X-Forwarded-For", forwarded_for(request));
  headers.emplace_back("User-Agent", kUserAgent);
  headers.insert(headers.end(), own.begin(), own.end());
  return headers;
}

/// The value of X-Redfish-Url; null if there is none. Repeated headers are treated as invalid.
std::optional<std::string> target_header(const net::Headers& headers) {
  std::optional<std::string> found;
  for (const auto& [name, value] : headers) {
    if (same_in_any_case(name, kTargetHeader)) {
      found = found ? std::string() : std::string(trim(value));
    }
  }
  return found;
}

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

constexpr std::size_t kMaxBodyBytes = std::size_t{64} << 10U;
constexpr std::size_t kMaxConnections = 20'000;
/// Longer than the 60 s at which most exporters are scraped at the latest.
constexpr std::chrono::seconds kIdleClientTimeout{90};

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

Result<std::shared_ptr<const Snapshot>> Snapshot::create(Config config, net::Lookup lookup) {
  CEEMS_TRY(bmcs, Bmcs::create(config, std::move(lookup)));
  CEEMS_TRY(client, net::Client::create(config.client));
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->config = std::move(config);
  snapshot->bmcs = std::move(bmcs);
  snapshot->client = std::move(client);
  return snapshot;
}

void Proxy::publish(std::shared_ptr<const Snapshot> snapshot) {
  const MutexLock lock(mutex_);
  snapshot_.swap(snapshot);
}

std::shared_ptr<const Snapshot> Proxy::snapshot() const {
  const MutexLock lock(mutex_);
  return snapshot_;
}

void Proxy::handle(const net::Request& request, net::Response& response) {
  const auto now = snapshot();
  if (answer_own_page(request, *now, response) || net::redirect_to_clean_path(request, response)) {
    return;
  }
  const Client client = client_of(request, now->config.trusted_proxies);
  const std::string& key = client.address.empty() ? request.remote_address : client.address;
  if (!admit(request, client, key, *now, response)) {
    return;
  }
  switch (now->config.policy->check(request.method, request.path)) {
    case Verdict::kPathRefused:
      answer_text(
          response, 401,
          fmt::format("access to api resource {} is not allowed", printable(request.path, 200)));
      return refuse(request, client, Outcome::kPathRefused, "resource", response);
    case Verdict::kMethodRefused:
      net::plain_text(response, 405, "Method Not Allowed");
      response.set_header("Allow", std::string(kMethods));
      return refuse(request, client, Outcome::kMethodRefused, "method", response);
    case Verdict::kAllowed:
      break;
  }
  if (const auto option = refused_option(request.query, now->config.allowed_query_options)) {
    answer_text(response, 401,
                fmt::format("query option {} is not allowed", printable(*option, 100)));
    return refuse(request, client, Outcome::kPathRefused, "query option", response);
  }
  auto bmc = find_bmc(request, client, *now, response);
  if (!bmc) {
    return;
  }
  auto places = take_places(key, *bmc, *now);
  if (!places) {
    const bool busy = places.error() == Outcome::kBusy;
    net::plain_text(response, busy ? 503 : 429, busy ? "Service Unavailable" : "Too Many Requests");
    response.set_header("Retry-After", "1");
    return refuse(request, client, places.error(),
                  busy ? "too many requests wait for the BMC" : "requests of this client wait",
                  response);
  }
  relay(request, client, std::move(*bmc), std::move(*places), *now, response);
}

std::expected<std::shared_ptr<void>, Outcome> Proxy::take_places(const std::string& key,
                                                                 const Bmc& bmc,
                                                                 const Snapshot& now) {
  auto places = std::make_shared<std::array<std::shared_ptr<void>, 3>>();
  auto& [of_client, share, of_others] = *places;
  of_client = slots_.take(key, static_cast<std::size_t>(now.config.max_requests_per_client));
  if (!of_client) {
    return std::unexpected(Outcome::kTooMany);
  }
  if (!bmc.own) {
    const std::string origin = bmc.url.origin();
    const std::size_t taken = std::min(shares_.count(origin), kMaxOfOthers - 1);
    share = shares_.take(origin + ' ' + key, std::min(kMaxOfEach, kMaxOfOthers - taken));
    if (!share) {
      return std::unexpected(Outcome::kTooMany);
    }
    of_others = shares_.take(origin, kMaxOfOthers);
  }
  if ((!bmc.own && !of_others) || bmc.upstream->in_flight() >= kMaxPerBmc) {
    return std::unexpected(Outcome::kBusy);
  }
  return places;
}

bool Proxy::admit(const net::Request& request,
                  const Client& client,
                  const std::string& key,
                  const Snapshot& now,
                  net::Response& response) {
  const std::int64_t rate = now.config.max_request_rate_per_client;
  const auto verdict = rate == 0 ? Rate::kWithin : rates_.count(key, rate, steady_clock::now());
  if (verdict == Rate::kWithin) {
    return true;
  }
  net::plain_text(response, 429, "Too Many Requests");
  response.set_header("Retry-After", "1");
  if (verdict == Rate::kFirstBeyond) {
    refuse(request, client, Outcome::kTooFast, "max_request_rate_per_client", response);
  } else {
    metrics_.count(Outcome::kTooFast);  // a line for each would fill the log
  }
  return false;
}

bool Proxy::answer_own_page(const net::Request& request,
                            const Snapshot& now,
                            net::Response& response) {
  if (!is_own_page(request)) {
    return false;
  }
  if (request.method != "GET" && request.method != "HEAD") {
    net::plain_text(response, 405, "Method Not Allowed");
    response.set_header("Allow", "GET, HEAD");
  } else if (request.path == kHealthPath) {
    net::plain_text(response, 200, "CEEMS Redfish Proxy is healthy");
  } else {
    response.set_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    response.body = metrics_.page(now.bmcs->targets(), slots_.in_use());
  }
  return true;
}

std::optional<Bmc> Proxy::find_bmc(const net::Request& request,
                                   const Client& client,
                                   const Snapshot& now,
                                   net::Response& response) {
  answer_text(response, 400, kNoTarget);
  auto of_node = now.bmcs->of_node(client.address);
  if (of_node || of_node.error().code != ErrorCode::kNotFound) {
    if (!of_node) {
      refuse(request, client, Outcome::kUnreachable, of_node.error().message, response);
      return std::nullopt;
    }
    of_node->own = true;
    return std::move(*of_node);
  }
  const auto time = steady_clock::now();
  const auto header = target_header(request.headers);
  std::optional<BmcUrl> url;
  if (header) {
    auto parsed = parse_bmc_header(*header);
    if (!parsed) {
      refuse(request, client, Outcome::kBadHeader, parsed.error().message, response);
      return std::nullopt;
    }
    url = std::move(*parsed);
  } else if (!client.address.empty()) {
    url = named_.find(client.address, now.config.remember, time);
  }
  if (!url) {
    refuse(request, client, Outcome::kNoTarget, "no target and no X-Redfish-Url", response);
    return std::nullopt;
  }
  auto bmc = now.bmcs->named(*url, client.loopback);
  if (!bmc) {
    const bool denied = bmc.error().code == ErrorCode::kPermissionDenied;
    refuse(request, client, denied ? Outcome::kTargetRefused : Outcome::kUnreachable,
           fmt::format("{}: {}", printable(url->origin()), bmc.error().message), response);
    return std::nullopt;
  }
  if (header && !client.address.empty() && now.config.remember.count() > 0) {
    named_.remember(client.address, *url, time);
  }
  return std::move(*bmc);
}

void Proxy::relay(const net::Request& request,
                  const Client& client,
                  Bmc bmc,
                  std::shared_ptr<void> slot,
                  const Snapshot& now,
                  net::Response& response) {
  net::Headers own;
  if (bmc.configured) {
    auto fields = now.client->own_headers(bmc.url.origin());
    if (!fields) {
      return refuse(request, client, Outcome::kUnreachable, fields.error().message, response);
    }
    own = std::move(*fields);
  }
  auto relay = std::make_shared<net::Relay>();
  relay->repeatable = request.method == "GET" || request.method == "HEAD";
  if (request.method == "POST") {
    relay->body = request.body;
  }
  relay->attempts.push_back({.upstream = std::move(bmc.upstream),
                             .method = request.method,
                             .target = target_for(bmc.url, request.path, request.query),
                             .host = bmc.url.host_field(),
                             .headers = headers_for(request, own)});
  relay->unavailable = std::move(response);
  response = {};
  relay->done = [this, start = steady_clock::now(), slot = std::move(slot), method = request.method,
                 path = request.path, client = client.address,
                 bmc = bmc.url.origin()](const net::RelayEnd& end) {
    metrics_.count_end(end, seconds_since(start));
    log::debug("passed on", {{"client", client},
                             {"method", printable(method, 20)},
                             {"path", printable(path, 200)},
                             {"bmc", bmc},
                             {"status", end.status},
                             {"err", end.error}});
  };
  response.relay = std::move(relay);
}

void Proxy::refuse(const net::Request& request,
                   const Client& client,
                   Outcome outcome,
                   std::string_view reason,
                   net::Response& response) {
  metrics_.count(outcome);
  log::info("refused", {{"client", client.address},
                        {"peer", request.remote_address},
                        {"method", printable(request.method, 20)},
                        {"path", printable(request.path, 200)},
                        {"outcome", to_string(outcome)},
                        {"reason", reason},
                        {"status", response.status}});
}

std::optional<std::string> refused_option(std::string_view query,
                                          const std::vector<std::string>& allowed) {
  while (!query.empty()) {
    const std::string_view option = query.substr(0, query.find_first_of("&;"));
    query.remove_prefix(std::min(option.size() + 1, query.size()));
    const std::string_view encoded = option.substr(0, option.find('='));
    std::string name = net::url_decode(encoded).value_or(std::string(encoded));
    const auto value = net::url_decode(option.substr(std::min(encoded.size() + 1, option.size())));
    // Some BMCs decode before they look for the end of an option.
    const bool ends_early = !value || value->find_first_of("&;?#%") != std::string::npos;
    if (!option.empty() && (ends_early || std::ranges::find(allowed, name) == allowed.end())) {
      return name;
    }
  }
  return std::nullopt;
}

bool is_own_page(const net::Request& request) {
  return request.path == kHealthPath || request.path == kMetricsPath;
}

std::string target_for(const BmcUrl& bmc, std::string_view path, std::string_view query) {
  std::string target = bmc.base_path;
  while (!path.empty()) {
    path.remove_prefix(1);  // every part of a clean path begins with a slash
    const std::string_view part = path.substr(0, path.find('/'));
    target += '/';
    net::append_url_encoded(target, part);
    path.remove_prefix(part.size());
  }
  char mark = '?';
  for (const std::string_view more : {std::string_view(bmc.query), query}) {
    if (!more.empty()) {
      target += mark;
      target += more;
      mark = '&';
    }
  }
  return target;
}

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
  server.idle_timeout = kIdleClientTimeout;
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
