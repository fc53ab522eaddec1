#include "exporter/redfish/config.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "config/section.h"
#include "config/yaml.h"
#include "net/client/client_config.h"

namespace ceems::exporter::redfish {
namespace {

using config::Node;
using config::Section;

constexpr const char* kSection = "redfish_collector";
constexpr const char* kOldSection = "redfish_web_config";
constexpr const char* kPduSection = "pdu_collector";
constexpr std::int64_t kMaxMilliseconds = 600'000;

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

Result<> read_http(const Node& node, Config& config) {
  // File names are relative to the working directory, as in the reference.
  CEEMS_TRY(http, net::client_options(node));
  config.http = std::move(http);
  bool skip_verify = false;
  CEEMS_TRY(Section(node).boolean("insecure_skip_verify", skip_verify).done());
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
  Config config;
  std::int64_t port = 0;  // the default port of the protocol
  std::int64_t timeout = 0;
  Section section(node);
  section.only(keys)
      .text("protocol", config.protocol)
      .refuse(!node["protocol"].present(), "protocol",
              "protocol is missing, expected http or https")
      .refuse(config.protocol != "http" && config.protocol != "https", "protocol",
              fmt::format("expected http or https, got '{}'", printable(config.protocol)))
      .text("hostname", config.hostname);
  replace_all(config.hostname, "{hostname}", context.node_name);
  section.refuse(!is_host(config.hostname), "hostname", "expected the name or address of a host")
      .integer("port", port)
      .refuse(port < 0 || port > 65535, "port", "expected a port, 1 to 65535")
      .text("username", config.username)
      .text("password", config.password)
      .boolean("use_session_token", config.use_session_token)
      .integer("timeout", timeout)
      .refuse(timeout > kMaxMilliseconds, "timeout", "expected at most 600000 milliseconds")
      .text("external_url", config.external_url);
  std::string& url = config.external_url;
  section
      .refuse(!url.empty() && !url.starts_with("http://") && !url.starts_with("https://"),
              "external_url", "expected a URL that starts with http:// or https://")
      .refuse(url.find_first_of("?#") != std::string::npos, "external_url",
              "expected a URL without a query");
  CEEMS_TRY(section.done());
  if (config.hostname.find(':') != std::string::npos && !config.hostname.starts_with('[')) {
    config.hostname = "[" + config.hostname + "]";
  }
  if (port != 0) {
    config.port = static_cast<int>(port);
  }
  if (timeout > 0) {
    config.timeout = std::chrono::milliseconds(timeout);
  }
  while (url.ends_with('/')) {
    url.pop_back();
  }
  CEEMS_TRY(read_http(node, config));
  return config;
}

Result<Config> read_section(const Node& node, const ConfigContext& context) {
  CEEMS_TRY(config, read_service(node, context, {"node_chassis"}));
  CEEMS_TRY(Section(node).list("node_chassis", config.node_chassis).done());
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
  CEEMS_TRY(Section(node).text("name", pdu.name).done());
  const Node outlets = node["outlets"];
  for (const auto& [outlet, of] : outlets.entries()) {
    CEEMS_TRY(Section(outlets).text(outlet, pdu.outlets[outlet]).done());
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
