#include "api/login/config.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/answer/cors.h"
#include "api/login/oidc.h"
#include "base/strings.h"
#include "config/section.h"
#include "ingest/config.h"
#include "model/protocol.h"

namespace ceems::api::login {
namespace {

/// A mapping that is enabled by its presence and disabled by `enabled: false`.
bool is_on(const config::Node& node, config::Section& section) {
  bool enabled = node.present();
  section.boolean("enabled", enabled);
  return enabled;
}

Result<> read_header(const config::Node& node,
                     const std::string& directory,
                     LoginOptions& options,
                     bool& said) {
  config::Section section(node);
  std::vector<std::string> proxies;
  section.only({"enabled", "trusted_proxies", "proxy_token_file", "map"})
      .boolean("enabled", options.header)
      .list("trusted_proxies", proxies)
      .file("proxy_token_file", options.proxy_token_file, directory)
      .refuse(node["proxy_token_file"].present() && !node["trusted_proxies"].present(),
              "proxy_token_file", "set trusted_proxies, too");
  CEEMS_TRY(names, config::NameMap::read(node["map"], directory, model::kServiceAccount));
  options.names = std::move(names);
  const config::Node list = node["trusted_proxies"];
  said = node["enabled"].present() || list.present();
  if (!section.ok() || !list.present()) {
    return section.done();
  }
  net::TrustedPeers peers;
  const auto items = list.items();
  for (std::size_t i = 0; i < proxies.size(); ++i) {
    auto range = net::Cidr::parse(proxies[i]);
    if (!range) {
      const config::Node& place = i < items.size() ? items[i] : list;
      return fail(place.error(range.error().message));
    }
    peers.ranges.push_back(*std::move(range));
  }
  options.trusted_proxies = std::move(peers);
  return {};
}

Result<> read_service_account(const config::Node& node,
                              const std::string& directory,
                              LoginOptions& options) {
  ServiceAccountOptions account;
  config::Section section(node);
  section.only({"web_user", "token_file"})
      .text("web_user", account.web_user)
      .file("token_file", account.token_file, directory)
      .refuse(node.present() && account.web_user.empty() && account.token_file.empty(), "",
              "expected web_user, a user of the web configuration, or token_file");
  if (node.present()) {
    options.service_account = std::move(account);
  }
  return section.done();
}

Result<> read_local(const config::Node& node, const std::string& directory, LoginOptions& options) {
  config::Section section(node);
  LocalOptions local;
  section.only({"enabled", "users_file"}).file("users_file", local.users_file, directory);
  if (is_on(node, section)) {
    section.refuse(local.users_file.empty(), "users_file", "users_file must be the name of a file");
    options.local = std::move(local);
  }
  return section.done();
}

Result<> read_oidc(const config::Node& node, const std::string& directory, LoginOptions& options) {
  config::Section section(node);
  OidcOptions oidc;
  section
      .only({"enabled", "name", "issuer", "client_id", "client_secret_file", "scopes",
             "redirect_url", "username_claim", "sub_fallback", "groups_claim", "admin_groups",
             "support_groups", "http_client"})
      .text("name", oidc.name)
      .text("issuer", oidc.issuer)
      .text("client_id", oidc.client_id)
      .file("client_secret_file", oidc.client_secret_file, directory)
      .list("scopes", oidc.scopes)
      .text("redirect_url", oidc.redirect_url)
      .text("username_claim", oidc.username_claim)
      .boolean("sub_fallback", oidc.sub_fallback)
      .text("groups_claim", oidc.groups_claim)
      .list("admin_groups", oidc.admin_groups)
      .list("support_groups", oidc.support_groups);
  if (!is_on(node, section) || !section.ok()) {
    return section.done();
  }
  if (const config::Node http = node["http_client"]; http.present()) {
    CEEMS_TRY(client, ingest::client_options(http, directory, {}));
    oidc.http = std::move(client);
  }
  const bool mapped = !oidc.admin_groups.empty() || !oidc.support_groups.empty();
  section
      .refuse(!is_provider_url(oidc.issuer), "issuer",
              "issuer must be an https URL without query (http only for localhost)")
      .refuse(oidc.client_id.empty(), "client_id", "expected the client_id from the provider")
      .refuse(std::ranges::find(oidc.scopes, "openid") == oidc.scopes.end(), "scopes",
              "expected the scope openid in the list")
      .refuse(!oidc.redirect_url.empty() && !is_provider_url(oidc.redirect_url), "redirect_url",
              "expected an https URL without query (http only for localhost)")
      .refuse(oidc.username_claim.empty(), "username_claim", "expected the name of a claim")
      .refuse(mapped && oidc.groups_claim.empty(), "groups_claim",
              "expected groups_claim, because groups are mapped to roles");
  options.oidc = std::move(oidc);
  return section.done();
}

Result<> read_session(const config::Node& node,
                      const std::string& directory,
                      LoginOptions& options) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  config::Section section(node);
  milliseconds idle = options.session.idle;
  milliseconds absolute = options.session.absolute;
  section.only({"key_file", "idle_timeout", "max_lifetime"})
      .file("key_file", options.session_key_file, directory)
      .duration("idle_timeout", idle)
      .duration("max_lifetime", absolute)
      .refuse(idle < std::chrono::minutes(1), "idle_timeout", "expected at least 1m")
      .refuse(absolute < idle, "max_lifetime", "expected at least idle_timeout")
      .refuse(absolute > std::chrono::days(365), "max_lifetime", "expected at most 1y");
  options.session.idle = std::chrono::duration_cast<seconds>(idle);
  options.session.absolute = std::chrono::duration_cast<seconds>(absolute);
  return section.done();
}

Result<> read_tokens(const config::Node& node, LoginOptions& options) {
  constexpr std::chrono::days kDay(1);
  config::Section section(node);
  TokenOptions& tokens = options.tokens;
  section.only({"enabled", "default_lifetime", "max_lifetime"})
      .boolean("enabled", tokens.enabled)
      .duration("default_lifetime", tokens.default_lifetime)
      .duration("max_lifetime", tokens.max_lifetime)
      .refuse(tokens.max_lifetime < kDay || tokens.max_lifetime > std::chrono::days(365),
              "max_lifetime", "expected 1d to 1y")
      .refuse(tokens.default_lifetime < kDay, "default_lifetime", "expected at least 1d")
      .refuse(node["default_lifetime"].present() && tokens.default_lifetime > tokens.max_lifetime,
              "default_lifetime", "expected at most max_lifetime")
      .refuse(node["enabled"].present() && tokens.enabled && !options.offers_tokens(), "enabled",
              "every peer may name users by header, so anybody could make tokens of anybody: set "
              "header.trusted_proxies, or header.enabled: false");
  return section.done();
}

Result<> read_leads(const config::Node& node, access::Roles& roles) {
  if (!node.present()) {
    return {};
  }
  if (!node.is_list()) {
    return fail(node.error("expected a list"));
  }
  for (const config::Node& item : node.items()) {
    access::Roles::Leads entry;
    config::Section section(item);
    section.only({"cluster", "project", "users"})
        .text("cluster", entry.cluster_id)
        .text("project", entry.project)
        .list("users", entry.users)
        .refuse(entry.cluster_id.empty(), "cluster", "cluster must be the id of a cluster")
        .refuse(entry.project.empty(), "project", "project must be the name of a project")
        .refuse(entry.users.empty(), "users", "users must be a list of user names");
    CEEMS_TRY(section.done());
    roles.project_leads.push_back(std::move(entry));
  }
  return {};
}

}  // namespace

Result<LoginOptions> parse_login(const config::Node& identity,
                                 const config::Node& roles,
                                 const std::string& directory,
                                 std::vector<std::string>& warnings) {
  LoginOptions options;
  bool header_said = false;
  config::Section section(identity);
  section.only({"header", "local", "oidc", "session", "service_account", "tokens"});
  section.also(read_header(identity["header"], directory, options, header_said));
  section.also(read_service_account(identity["service_account"], directory, options));
  section.also(read_local(identity["local"], directory, options));
  section.also(read_oidc(identity["oidc"], directory, options));
  section.also(read_session(identity["session"], directory, options));
  section.also(read_tokens(identity["tokens"], options));
  if (section.ok() && options.has_sessions() && options.header) {
    if (!header_said) {
      return fail(identity.error(
          "logins are enabled: set header.trusted_proxies to the addresses that may name users by "
          "header, or header.enabled: false"));
    }
    if (!options.trusted_proxies) {
      warnings.push_back(
          identity["header"]
              .error("every peer may name users by header, so logins protect nothing")
              .message);
    }
  }
  config::Section role_section(roles);
  role_section.only({"project_leads", "support"}).list("support", options.roles.support);
  role_section.also(read_leads(roles["project_leads"], options.roles));
  section.also(role_section.done());
  if (!section.ok()) {
    return fail(section.done().error());
  }
  return options;
}

std::vector<std::string> exposure_warnings(const LoginOptions& options,
                                           std::string_view cors_origin) {
  std::vector<std::string> warnings;
  if (!options.guards_service_account()) {
    warnings.push_back(fmt::format(
        "every client may name any user in the header, {} and other administrators included: set "
        "identity.header.trusted_proxies and identity.service_account",
        model::kServiceAccount));
  }
  const auto cors = Cors::create(cors_origin, {});
  const bool open = cors && cors->allows("https://ceems-stranger.invalid") &&
                    cors->allows("http://192.0.2.1:12345");
  if (open && options.header && !options.trusted_proxies) {
    warnings.emplace_back(
        "every client may name any user in the header, and --web.cors.origin allows every origin: "
        "any web page that is open in a browser on this network can read everything. Set "
        "--web.cors.origin to that of Grafana");
  }
  return warnings;
}

}  // namespace ceems::api::login
