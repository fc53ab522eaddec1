// The HTTP client block: Prometheus' http_client_config.
#include <algorithm>
#include <array>
#include <utility>

#include "api/config.h"
#include "api/config_section.h"
#include "base/strings.h"

namespace ceems::api {
namespace {

Result<net::TlsOptions> read_tls(const config::Node& node, const std::string& directory) {
  net::TlsOptions tls;
  ConfigSection section(node);
  section
      .only({"ca", "ca_file", "cert", "cert_file", "key", "key_file", "server_name",
             "insecure_skip_verify", "min_version", "max_version"})
      .text("ca", tls.ca)
      .file("ca_file", tls.ca_file, directory)
      .text("cert", tls.cert)
      .file("cert_file", tls.cert_file, directory)
      .text("key", tls.key)
      .file("key_file", tls.key_file, directory)
      .text("server_name", tls.server_name)
      .boolean("insecure_skip_verify", tls.insecure_skip_verify)
      .text("min_version", tls.min_version)
      .text("max_version", tls.max_version);
  for (const auto& [key, file] :
       {std::pair("ca", "ca_file"), {"cert", "cert_file"}, {"key", "key_file"}}) {
    section.refuse(node[key].present() && node[file].present(), file,
                   fmt::format("at most one of {} and {} must be configured", key, file));
  }
  for (const auto& [key, value] :
       {std::pair("min_version", &tls.min_version), {"max_version", &tls.max_version}}) {
    constexpr std::array kVersions{"", "TLS10", "TLS11", "TLS12", "TLS13"};
    section.refuse(std::ranges::find(kVersions, std::string_view(*value)) == kVersions.end(), key,
                   "expected one of TLS10, TLS11, TLS12, TLS13");
  }
  if (!section.ok()) {
    return fail(section.done().error());
  }
  return tls;
}

Result<> read_basic_auth(const config::Node& node,
                         const std::string& directory,
                         net::ClientOptions& options) {
  if (!node.present()) {
    return {};
  }
  options.basic_auth = net::ClientOptions::BasicAuth{};
  auto& auth = *options.basic_auth;
  return ConfigSection(node)
      .only({"username", "username_file", "password", "password_file"})
      .text("username", auth.username)
      .file("username_file", auth.username_file, directory)
      .text("password", auth.password)
      .file("password_file", auth.password_file, directory)
      .refuse(!auth.username.empty() && !auth.username_file.empty(), "username_file",
              "at most one of basic_auth username and username_file must be configured")
      .refuse(!auth.password.empty() && !auth.password_file.empty(), "password_file",
              "at most one of basic_auth password and password_file must be configured")
      .done();
}

Result<> read_authorization(const config::Node& node,
                            const std::string& directory,
                            net::ClientOptions& options) {
  if (!node.present()) {
    return {};
  }
  options.authorization = net::ClientOptions::Authorization{};
  auto& authorization = *options.authorization;
  return ConfigSection(node)
      .only({"type", "credentials", "credentials_file"})
      .text("type", authorization.type)
      .text("credentials", authorization.credentials)
      .file("credentials_file", authorization.credentials_file, directory)
      .refuse(to_lower(trim(authorization.type)) == "basic", "type",
              "authorization type cannot be set to basic, use basic_auth instead")
      .refuse(!authorization.credentials.empty() && !authorization.credentials_file.empty(),
              "credentials_file",
              "at most one of credentials and credentials_file must be configured")
      .done();
}

Result<> read_oauth2(const config::Node& node,
                     const std::string& directory,
                     net::ClientOptions& options) {
  if (!node.present()) {
    return {};
  }
  options.oauth2 = net::ClientOptions::OAuth2{};
  auto& oauth2 = *options.oauth2;
  ConfigSection section(node);
  section
      .only({"client_id", "client_secret", "client_secret_file", "scopes", "token_url",
             "endpoint_params", "tls_config", "proxy_url", "no_proxy", "proxy_from_environment",
             "proxy_connect_header"})
      .text("client_id", oauth2.client_id)
      .text("client_secret", oauth2.client_secret)
      .file("client_secret_file", oauth2.client_secret_file, directory)
      .text("token_url", oauth2.token_url)
      .list("scopes", oauth2.scopes);
  section.refuse(oauth2.client_id.empty(), "client_id", "oauth2 client_id must be configured");
  section.refuse(oauth2.token_url.empty(), "token_url", "oauth2 token_url must be configured");
  section.refuse(!oauth2.client_secret.empty() && !oauth2.client_secret_file.empty(),
                 "client_secret_file",
                 "at most one of client_secret and client_secret_file must be configured");
  for (const auto& [name, value] : node["endpoint_params"].entries()) {
    auto text = value.as_string();
    if (text) {
      oauth2.endpoint_params[name] = std::move(*text);
    } else {
      section.also(fail(std::move(text).error()));
    }
  }
  auto tls = read_tls(node["tls_config"], directory);
  if (tls) {
    oauth2.tls = std::move(*tls);
  } else {
    section.also(fail(std::move(tls).error()));
  }
  return section.done();
}

/// Headers that the client or the other blocks set.
bool is_reserved_header(std::string_view name) {
  constexpr std::array kReserved{"authorization",
                                 "host",
                                 "content-encoding",
                                 "content-length",
                                 "content-type",
                                 "user-agent",
                                 "connection",
                                 "keep-alive",
                                 "proxy-authenticate",
                                 "proxy-authorization",
                                 "www-authenticate",
                                 "accept-encoding",
                                 "x-prometheus-remote-write-version",
                                 "x-prometheus-remote-read-version",
                                 "x-prometheus-scrape-timeout-seconds"};
  const std::string lower = to_lower(name);
  return std::ranges::find(kReserved, std::string_view(lower)) != kReserved.end();
}

Result<> read_headers(const config::Node& node,
                      const std::string& directory,
                      net::ClientOptions& options) {
  if (auto done = ConfigSection(node).done(); !done) {
    return done;
  }
  for (const auto& [name, value] : node.entries()) {
    if (is_reserved_header(name)) {
      return fail(value.error(fmt::format("setting header \"{}\" is not allowed", name)));
    }
    auto& header = options.headers[name];
    auto done = ConfigSection(value)
                    .only({"values", "secrets", "files"})
                    .list("values", header.values)
                    .list("secrets", header.secrets)
                    .list("files", header.files)
                    .done();
    if (!done) {
      return done;
    }
    for (std::string& file : header.files) {
      if (!file.starts_with('/') && !directory.empty()) {
        file.insert(0, 1, '/').insert(0, directory);
      }
    }
  }
  return {};
}

}  // namespace

Result<net::ClientOptions> parse_http_client(const config::Node& node,
                                             const std::string& directory,
                                             const std::vector<std::string>& others,
                                             std::vector<std::string>& warnings) {
  net::ClientOptions options;
  options.user_agent = "ceems_api_server";
  ConfigSection section(node);
  for (const auto& [key, value] : node.entries()) {
    if (std::ranges::find(others, key) == others.end() && section.ok()) {
      section.also(node.only_keys(
          {"basic_auth", "authorization", "oauth2", "bearer_token", "bearer_token_file",
           "tls_config", "follow_redirects", "enable_http2", "proxy_url", "no_proxy",
           "proxy_from_environment", "proxy_connect_header", "http_headers",
           others.empty() ? "" : others.front(), others.empty() ? "" : others.back()}));
    }
  }
  section.boolean("follow_redirects", options.follow_redirects)
      .boolean("enable_http2", options.enable_http2)
      .text("proxy_url", options.proxy_url)
      .text("no_proxy", options.no_proxy)
      .boolean("proxy_from_environment", options.proxy_from_environment);
  section.also(read_basic_auth(node["basic_auth"], directory, options));
  section.also(read_authorization(node["authorization"], directory, options));
  section.also(read_oauth2(node["oauth2"], directory, options));
  section.also(read_headers(node["http_headers"], directory, options));
  if (node["bearer_token"].present() || node["bearer_token_file"].present()) {
    section.refuse(options.authorization.has_value(), "authorization",
                   "authorization and bearer_token must not be configured together");
    options.authorization = net::ClientOptions::Authorization{};
    auto& bearer = *options.authorization;
    section.text("bearer_token", bearer.credentials)
        .file("bearer_token_file", bearer.credentials_file, directory);
  }
  const int ways =
      (options.basic_auth ? 1 : 0) + (options.authorization ? 1 : 0) + (options.oauth2 ? 1 : 0);
  section.refuse(ways > 1, "basic_auth",
                 "at most one of basic_auth, oauth2 and authorization must be configured");
  auto tls = read_tls(node["tls_config"], directory);
  if (tls) {
    options.tls = std::move(*tls);
  } else {
    section.also(fail(std::move(tls).error()));
  }
  if (node["proxy_connect_header"].present()) {
    warnings.push_back(
        node["proxy_connect_header"].error("is not supported and has no effect").message);
  }
  if (!section.ok()) {
    return fail(section.done().error());
  }
  return options;
}

}  // namespace ceems::api
