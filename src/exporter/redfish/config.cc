#include "exporter/redfish/config.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "config/yaml.h"
#include "net/client/client_config.h"

namespace ceems::exporter::redfish {
namespace {

using config::Node;

constexpr const char* kSection = "redfish_collector";
constexpr const char* kOldSection = "redfish_web_config";
constexpr const char* kPduSection = "pdu_collector";
constexpr std::int64_t kMaxMilliseconds = 600'000;

template <class T>
Result<> take(Result<T> value, T& into) {
  if (!value) {
    return fail(std::move(value).error());
  }
  into = *std::move(value);
  return {};
}

Result<> read_string(const Node& node, std::string& into) {
  return node.present() ? take(node.as_string(), into) : Result<>();
}

Result<> read_bool(const Node& node, bool& into) {
  return node.present() ? take(node.as_bool(), into) : Result<>();
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

/// Whether the text is a name or address, without anything that would change the meaning of a URL.
/// IPv6 may be in brackets.
bool is_host(std::string_view host) {
  return host.size() <= 255 &&
         host.find_first_of(std::string_view("/?#@\\ \t\r\n\0", 10)) == std::string_view::npos;
}

Result<> read_place(const Node& node, const ConfigContext& context, Config& config) {
  const Node protocol = node["protocol"];
  if (!protocol.present()) {
    return fail(node.error("protocol is missing, expected http or https"));
  }
  CEEMS_TRY(read_string(protocol, config.protocol));
  if (config.protocol != "http" && config.protocol != "https") {
    return fail(protocol.error(
        fmt::format("expected http or https, got '{}'", printable(config.protocol))));
  }
  const Node hostname = node["hostname"];
  CEEMS_TRY(read_string(hostname, config.hostname));
  replace_all(config.hostname, "{hostname}", context.node_name);
  if (!is_host(config.hostname)) {
    return fail(hostname.error("expected the name or address of a host"));
  }
  if (config.hostname.find(':') != std::string::npos && !config.hostname.starts_with('[')) {
    config.hostname = "[" + config.hostname + "]";
  }
  if (const Node port = node["port"]; port.present()) {
    CEEMS_TRY(number, port.as_int());
    if (number < 0 || number > 65535) {
      return fail(port.error("expected a port, 1 to 65535"));
    }
    if (number != 0) {  // 0 means the default port of the protocol
      config.port = static_cast<int>(number);
    }
  }
  return {};
}

Result<> read_timeout(const Node& node, Config& config) {
  if (!node.present()) {
    return {};
  }
  CEEMS_TRY(milliseconds, node.as_int());
  if (milliseconds > kMaxMilliseconds) {
    return fail(node.error("expected at most 600000 milliseconds"));
  }
  if (milliseconds > 0) {
    config.timeout = std::chrono::milliseconds(milliseconds);
  }
  return {};
}

Result<> read_external_url(const Node& node, Config& config) {
  CEEMS_TRY(read_string(node, config.external_url));
  std::string& url = config.external_url;
  if (!url.empty() && !url.starts_with("http://") && !url.starts_with("https://")) {
    return fail(node.error("expected a URL that starts with http:// or https://"));
  }
  if (url.find_first_of("?#") != std::string::npos) {
    return fail(node.error("expected a URL without a query"));
  }
  while (url.ends_with('/')) {
    url.pop_back();
  }
  return {};
}

Result<> read_http(const Node& node, Config& config) {
  // File names are relative to the working directory, as in the reference.
  CEEMS_TRY(http, net::client_options(node));
  config.http = std::move(http);
  bool skip_verify = false;
  CEEMS_TRY(read_bool(node["insecure_skip_verify"], skip_verify));
  if (skip_verify) {
    log::warn("insecure_skip_verify is deprecated, use tls_config.insecure_skip_verify",
              {{"collector", "redfish"}});
    config.http.tls = {};
    config.http.tls.insecure_skip_verify = true;
  }
  std::erase_if(config.http.headers,
                [](const auto& header) { return to_lower(header.first) == "x-redfish-url"; });
  return {};
}

/// `more` are keys of this section beside the keys of every service.
Result<Config> read_service(const Node& node,
                            const ConfigContext& context,
                            std::initializer_list<std::string_view> more) {
  if (!node.is_map()) {
    return fail(node.error("expected a mapping"));
  }
  std::vector<std::string_view> keys{"protocol",
                                     "hostname",
                                     "port",
                                     "username",
                                     "password",
                                     "use_session_token",
                                     "timeout",
                                     "external_url",
                                     "insecure_skip_verify",
                                     "tls_config",
                                     "basic_auth",
                                     "authorization",
                                     "bearer_token",
                                     "bearer_token_file",
                                     "oauth2",
                                     "proxy_url",
                                     "no_proxy",
                                     "proxy_from_environment",
                                     "proxy_connect_header",
                                     "follow_redirects",
                                     "enable_http2",
                                     "http_headers"};
  keys.insert(keys.end(), more);
  CEEMS_TRY(node.only_keys(keys));
  Config config;
  Result<> done = read_place(node, context, config);
  if (done) {
    done = read_string(node["username"], config.username);
  }
  if (done) {
    done = read_string(node["password"], config.password);
  }
  if (done) {
    done = read_bool(node["use_session_token"], config.use_session_token);
  }
  if (done) {
    done = read_timeout(node["timeout"], config);
  }
  if (done) {
    done = read_external_url(node["external_url"], config);
  }
  if (done) {
    done = read_http(node, config);
  }
  if (!done) {
    return fail(std::move(done).error());
  }
  return config;
}

Result<Config> read_section(const Node& node, const ConfigContext& context) {
  CEEMS_TRY(config, read_service(node, context, {"node_chassis"}));
  if (const Node chassis = node["node_chassis"]; chassis.present()) {
    CEEMS_TRY(take(chassis.as_string_list(), config.node_chassis));
  }
  for (const auto& [name, into] : {std::pair("REDFISH_WEB_USERNAME", &config.username),
                                   std::pair("REDFISH_WEB_PASSWORD", &config.password)}) {
    if (std::string value = context.environment(name); !value.empty()) {
      *into = std::move(value);
    }
  }
  return config;
}

Result<PduConfig> read_pdu(const Node& node, const ConfigContext& context) {
  PduConfig pdu;
  CEEMS_TRY(service, read_service(node, context, {"name", "outlets"}));
  pdu.service = std::move(service);
  if (pdu.service.hostname.empty()) {
    return fail(node.error("hostname is missing"));
  }
  pdu.name = pdu.service.hostname;
  CEEMS_TRY(read_string(node["name"], pdu.name));
  for (const auto& [outlet, of] : node["outlets"].entries()) {
    CEEMS_TRY(read_string(of, pdu.outlets[outlet]));
    if (pdu.outlets[outlet].empty()) {
      return fail(of.error("expected the name of the node that this outlet feeds"));
    }
  }
  if (pdu.outlets.empty()) {
    return fail(node.error("outlets is missing, expected a mapping from outlets to nodes"));
  }
  return pdu;
}

}  // namespace

std::string Config::bmc_url() const {
  return port ? fmt::format("{}://{}:{}", protocol, hostname, *port)
              : fmt::format("{}://{}", protocol, hostname);
}

std::string Config::base_url() const {
  return external_url.empty() ? bmc_url() : external_url;
}

bool Config::reads_files() const {
  const auto of_tls = [](const net::TlsOptions& tls) {
    return !tls.ca_file.empty() || !tls.cert_file.empty() || !tls.key_file.empty();
  };
  const auto& basic = http.basic_auth;
  const auto& authorization = http.authorization;
  const auto& oauth2 = http.oauth2;
  return of_tls(http.tls) ||
         (basic && !(basic->username_file.empty() && basic->password_file.empty())) ||
         (authorization && !authorization->credentials_file.empty()) ||
         (oauth2 && (!oauth2->client_secret_file.empty() || of_tls(oauth2->tls))) ||
         std::ranges::any_of(http.headers,
                             [](const auto& header) { return !header.second.files.empty(); });
}

Result<Config> parse_config(std::string_view text,
                            std::string_view name,
                            const ConfigContext& context) {
  CEEMS_TRY(document, config::parse_yaml(text, name));
  if (document.is_map()) {
    CEEMS_TRY(document.only_keys({kSection, kOldSection}));
  }
  const Node section = document[kSection];
  if (section.present()) {
    return read_section(section, context);
  }
  const Node old = document[kOldSection];
  if (old.present()) {
    log::warn("the section redfish_web_config is deprecated, use redfish_collector",
              {{"collector", "redfish"}, {"file", name}});
    return read_section(old, context);
  }
  return fail(ErrorCode::kInvalidArgument, "{}: the section redfish_collector is missing or empty",
              name);
}

Result<std::vector<PduConfig>> parse_pdu_config(std::string_view text,
                                                std::string_view name,
                                                const ConfigContext& context) {
  CEEMS_TRY(document, config::parse_yaml(text, name));
  CEEMS_TRY(document.only_keys({kPduSection}));
  const Node section = document[kPduSection];
  if (section.items().empty()) {
    return fail(ErrorCode::kInvalidArgument, "{}: {} is not a list of units", name, kPduSection);
  }
  std::vector<PduConfig> units;
  for (const Node& node : section.items()) {
    CEEMS_TRY(unit, read_pdu(node, context));
    if (std::ranges::find(units, unit.name, &PduConfig::name) != units.end()) {
      return fail(node.error(fmt::format("the name {} is taken", printable(unit.name))));
    }
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace ceems::exporter::redfish
