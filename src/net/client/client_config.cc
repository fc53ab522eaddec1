#include "net/client/client_config.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/strings.h"
#include "net/unix_url.h"

namespace ceems::net {

namespace fs = std::filesystem;
using config::Node;

namespace {

constexpr std::array<std::string_view, 13> kKeys = {
    "basic_auth",       "authorization",          "oauth2",
    "bearer_token",     "bearer_token_file",      "tls_config",
    "follow_redirects", "enable_http2",           "proxy_url",
    "no_proxy",         "proxy_from_environment", "proxy_connect_header",
    "http_headers"};

/// Reads values one after another and remembers the first error.
class Reader {
 public:
  explicit Reader(fs::path directory) : directory_(std::move(directory)) {}

  void text(const Node& node, std::string& into) {
    if (node.present()) {
      take(node.as_string(), into);
    }
  }
  void file(const Node& node, std::string& into) {
    text(node, into);
    into = beside_config(into);
  }
  [[nodiscard]] std::string beside_config(const std::string& name) const {
    return name.empty() || fs::path(name).is_absolute()
               ? name
               : (directory_ / name).lexically_normal().string();
  }
  void flag(const Node& node, bool& into) {
    if (node.present()) {
      take(node.as_bool(), into);
    }
  }
  void list(const Node& node, std::vector<std::string>& into) {
    if (node.present()) {
      take(node.as_string_list(), into);
    }
  }
  void keys(const Node& node, std::initializer_list<std::string_view> known) {
    if (auto checked = node.only_keys(known); !checked) {
      fail_with(std::move(checked).error());
    }
  }
  void mapping(const Node& node) {
    if (node.present() && !node.is_map()) {
      fail_with(node.error("expected a mapping"));
    }
  }
  void fail_with(Error error) {
    if (!error_) {
      error_ = std::move(error);
    }
  }
  void refuse(bool wrong, const Node& node, std::string_view message) {
    if (wrong) {
      fail_with(node.error(message));
    }
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  template <typename T>
  void take(Result<T> value, T& into) {
    if (value) {
      into = *std::move(value);
    } else {
      fail_with(std::move(value).error());
    }
  }

  fs::path directory_;
  std::optional<Error> error_;
};

void read_tls(Reader& reader, const Node& node, TlsOptions& tls) {
  reader.mapping(node);
  reader.keys(node, {"ca", "ca_file", "cert", "cert_file", "key", "key_file", "server_name",
                     "insecure_skip_verify", "min_version", "max_version"});
  reader.text(node["ca"], tls.ca);
  reader.file(node["ca_file"], tls.ca_file);
  reader.text(node["cert"], tls.cert);
  reader.file(node["cert_file"], tls.cert_file);
  reader.text(node["key"], tls.key);
  reader.file(node["key_file"], tls.key_file);
  reader.text(node["server_name"], tls.server_name);
  reader.flag(node["insecure_skip_verify"], tls.insecure_skip_verify);
  reader.refuse(!tls.ca.empty() && !tls.ca_file.empty(), node, "at most one of ca and ca_file");
  reader.refuse(!tls.cert.empty() && !tls.cert_file.empty(), node,
                "at most one of cert and cert_file");
  reader.refuse(!tls.key.empty() && !tls.key_file.empty(), node, "at most one of key and key_file");
  const bool cert = !tls.cert.empty() || !tls.cert_file.empty();
  const bool key = !tls.key.empty() || !tls.key_file.empty();
  reader.refuse(cert && !key, node, "a certificate needs key or key_file");
  reader.refuse(key && !cert, node, "a key needs cert or cert_file");
  for (const auto& [name, into] :
       {std::pair<std::string_view, std::string*>{"min_version", &tls.min_version},
        {"max_version", &tls.max_version}}) {
    const Node version = node[name];
    reader.text(version, *into);
    constexpr std::array<std::string_view, 5> kVersions = {"", "TLS10", "TLS11", "TLS12", "TLS13"};
    reader.refuse(
        std::ranges::find(kVersions, *into) == kVersions.end(), version,
        fmt::format("expected one of TLS10, TLS11, TLS12, TLS13; got '{}'", printable(*into, 40)));
  }
}

template <typename Options>
void read_proxy(Reader& reader, const Node& node, Options& options) {
  reader.text(node["proxy_url"], options.proxy_url);
  reader.text(node["no_proxy"], options.no_proxy);
  reader.flag(node["proxy_from_environment"], options.proxy_from_environment);
  reader.refuse(options.proxy_from_environment && !options.proxy_url.empty(), node["proxy_url"],
                "cannot stand beside proxy_from_environment");
  reader.refuse(options.proxy_from_environment && !options.no_proxy.empty(), node["no_proxy"],
                "cannot stand beside proxy_from_environment");
  reader.refuse(!options.no_proxy.empty() && options.proxy_url.empty(), node["no_proxy"],
                "needs proxy_url");
}

void read_basic_auth(Reader& reader, const Node& node, ClientOptions& options) {
  if (!node.present()) {
    return;
  }
  options.basic_auth = ClientOptions::BasicAuth{};
  auto& basic = *options.basic_auth;
  reader.mapping(node);
  reader.keys(node, {"username", "username_file", "password", "password_file"});
  reader.text(node["username"], basic.username);
  reader.file(node["username_file"], basic.username_file);
  reader.text(node["password"], basic.password);
  reader.file(node["password_file"], basic.password_file);
  reader.refuse(!basic.username.empty() && !basic.username_file.empty(), node,
                "at most one of username and username_file");
  reader.refuse(!basic.password.empty() && !basic.password_file.empty(), node,
                "at most one of password and password_file");
}

void read_authorization(Reader& reader, const Node& node, ClientOptions& options) {
  if (!node.present()) {
    return;
  }
  options.authorization = ClientOptions::Authorization{};
  auto& authorization = *options.authorization;
  reader.mapping(node);
  reader.keys(node, {"type", "credentials", "credentials_file"});
  reader.text(node["type"], authorization.type);
  authorization.type = trim(authorization.type);
  if (authorization.type.empty()) {
    authorization.type = "Bearer";
  }
  reader.text(node["credentials"], authorization.credentials);
  reader.file(node["credentials_file"], authorization.credentials_file);
  reader.refuse(to_lower(authorization.type) == "basic", node["type"],
                "cannot be basic: use basic_auth instead");
  reader.refuse(!authorization.credentials.empty() && !authorization.credentials_file.empty(), node,
                "at most one of credentials and credentials_file");
}

/// Reads the deprecated form of `authorization`.
void read_bearer(Reader& reader, const Node& node, ClientOptions& options) {
  const Node token = node["bearer_token"];
  const Node file = node["bearer_token_file"];
  if (!token.present() && !file.present()) {
    return;
  }
  const Node& given = token.present() ? token : file;
  reader.refuse(token.present() && file.present(), file, "cannot stand beside bearer_token");
  reader.refuse(options.authorization.has_value(), given, "cannot stand beside authorization");
  options.authorization = ClientOptions::Authorization{};
  auto& authorization = *options.authorization;
  reader.text(token, authorization.credentials);
  reader.file(file, authorization.credentials_file);
}

void read_oauth2(Reader& reader, const Node& node, ClientOptions& options) {
  if (!node.present()) {
    return;
  }
  options.oauth2 = ClientOptions::OAuth2{};
  auto& oauth2 = *options.oauth2;
  reader.mapping(node);
  reader.keys(node, {"client_id", "client_secret", "client_secret_file", "scopes", "token_url",
                     "endpoint_params", "tls_config", "proxy_url", "no_proxy",
                     "proxy_from_environment", "proxy_connect_header"});
  reader.text(node["client_id"], oauth2.client_id);
  reader.text(node["client_secret"], oauth2.client_secret);
  reader.file(node["client_secret_file"], oauth2.client_secret_file);
  reader.text(node["token_url"], oauth2.token_url);
  reader.list(node["scopes"], oauth2.scopes);
  const Node params = node["endpoint_params"];
  reader.mapping(params);
  for (const auto& [name, value] : params.entries()) {
    reader.text(value, oauth2.endpoint_params[name]);
  }
  read_tls(reader, node["tls_config"], oauth2.tls);
  read_proxy(reader, node, oauth2);
  reader.refuse(oauth2.client_id.empty(), node, "client_id is missing");
  reader.refuse(oauth2.token_url.empty(), node, "token_url is missing");
  reader.refuse(!oauth2.client_secret.empty() && !oauth2.client_secret_file.empty(), node,
                "at most one of client_secret and client_secret_file");
}

bool is_reserved(std::string_view name) {
  constexpr std::array<std::string_view, 16> kReserved = {"authorization",
                                                          "host",
                                                          "user-agent",
                                                          "connection",
                                                          "keep-alive",
                                                          "proxy-authenticate",
                                                          "proxy-authorization",
                                                          "www-authenticate",
                                                          "accept-encoding",
                                                          "transfer-encoding",
                                                          "te",
                                                          "trailer",
                                                          "upgrade",
                                                          "x-prometheus-remote-write-version",
                                                          "x-prometheus-remote-read-version",
                                                          "x-prometheus-scrape-timeout-seconds"};
  const std::string low = to_lower(name);
  return low.starts_with("content-") || std::ranges::find(kReserved, low) != kReserved.end();
}

/// True for a token as defined in RFC 9110 §5.6.2.
bool is_field_name(std::string_view name) {
  return !name.empty() && has_only_words(name, "!#$%&'*+-.^_`|~");
}

void read_headers(Reader& reader, const Node& node, ClientOptions& options) {
  reader.mapping(node);
  for (const auto& [name, value] : node.entries()) {
    reader.refuse(is_reserved(name), value,
                  fmt::format("setting header \"{}\" is not allowed", printable(name)));
    reader.refuse(!is_field_name(name), value, "invalid header name");
    reader.mapping(value);
    reader.keys(value, {"values", "secrets", "files"});
    auto& extra = options.headers[name];
    reader.list(value["values"], extra.values);
    reader.list(value["secrets"], extra.secrets);
    std::vector<std::string> files;
    reader.list(value["files"], files);
    for (const std::string& file : files) {
      extra.files.push_back(reader.beside_config(file));
    }
  }
}

void read_connect_header(Reader& reader, const Node& node, ClientOptions& options) {
  reader.mapping(node);
  for (const auto& [name, value] : node.entries()) {
    reader.list(value, options.proxy_connect_header[name]);
  }
  reader.refuse(node.present() && options.proxy_url.empty() && !options.proxy_from_environment,
                node, "needs proxy_url or proxy_from_environment");
}

/// Reads a unix socket from the `url` beside the options.
void read_socket(Reader& reader, const Node& node, ClientOptions& options) {
  const Node url = node["url"];
  const auto text = url.present() ? url.as_string() : std::string();
  if (!text || !is_unix_url(*text)) {
    return;  // the caller checks any other value
  }
  auto read = parse_unix_url(*text);
  if (!read) {
    reader.refuse(true, url, read.error().message);
    return;
  }
  options.unix_socket = std::move(read->socket);
  reader.refuse(node["tls_config"].present(), node["tls_config"],
                "TLS is not spoken over a unix socket");
  reader.refuse(!options.proxy_url.empty() || options.proxy_from_environment, url,
                "a unix socket is not reached through a proxy");
}

}  // namespace

Result<ClientOptions> client_options(const Node& node, const fs::path& directory) {
  ClientOptions options;
  Reader reader(directory);
  reader.mapping(node);
  read_basic_auth(reader, node["basic_auth"], options);
  read_authorization(reader, node["authorization"], options);
  read_bearer(reader, node, options);
  read_oauth2(reader, node["oauth2"], options);
  const int kinds = static_cast<int>(options.basic_auth.has_value()) +
                    static_cast<int>(options.authorization.has_value()) +
                    static_cast<int>(options.oauth2.has_value());
  reader.refuse(kinds > 1, node,
                "at most one of basic_auth, authorization, oauth2, bearer_token and "
                "bearer_token_file");
  read_tls(reader, node["tls_config"], options.tls);
  reader.flag(node["follow_redirects"], options.follow_redirects);
  reader.flag(node["enable_http2"], options.enable_http2);
  read_proxy(reader, node, options);
  read_connect_header(reader, node["proxy_connect_header"], options);
  read_headers(reader, node["http_headers"], options);
  read_socket(reader, node, options);
  if (const auto& error = reader.error(); error) {
    return fail(*error);
  }
  return options;
}

Result<ClientOptions> client_options(const Node& node,
                                     const fs::path& directory,
                                     std::initializer_list<std::string_view> others) {
  std::vector<std::string_view> known(others);
  known.insert(known.end(), kKeys.begin(), kKeys.end());
  CEEMS_TRY(node.only_keys(known));
  return client_options(node, directory);
}

}  // namespace ceems::net
