#include "kube/kubeconfig.h"

#include <filesystem>
#include <utility>

#include "base/strings.h"
#include "config/yaml.h"
#include "crypto/base64.h"

namespace ceems::kube {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20U;

/// Reads values from a mapping and keeps the first error.
class Taker {
 public:
  Taker(const config::Node& node, std::filesystem::path directory)
      : node_(node), directory_(std::move(directory)) {}

  void text(std::string_view key, std::string& value) {
    const config::Node node = node_[key];
    if (!error_ && node.present()) {
      auto found = node.as_string();
      if (!found) {
        error_ = std::move(found).error();
        return;
      }
      value = *std::move(found);
    }
  }
  void flag(std::string_view key, bool& value) {
    const config::Node node = node_[key];
    if (!error_ && node.present()) {
      auto found = node.as_bool();
      if (!found) {
        error_ = std::move(found).error();
        return;
      }
      value = *found;
    }
  }
  void file(std::string_view key, std::string& value) {
    text(key, value);
    if (!value.empty()) {
      value = directory_ / value;  // an absolute name is kept
    }
  }
  /// Reads base64 from `key` into `value` and clears `value_file`, which it replaces.
  void data(std::string_view key, std::string& value, std::string& value_file) {
    std::string encoded;
    text(key, encoded);
    if (error_ || encoded.empty()) {
      return;
    }
    auto decoded = crypto::base64_decode(trim(encoded));
    if (!decoded) {
      error_ = node_[key].error("expected base64");
      return;
    }
    value = *std::move(decoded);
    value_file.clear();
  }

  [[nodiscard]] const config::Node& node() const { return node_; }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  std::optional<Error>& error() { return error_; }

 private:
  config::Node node_;
  std::filesystem::path directory_;
  std::optional<Error> error_;
};

/// Returns the value of `part` in the item of `list` that has this name.
Result<config::Node> named(const config::Node& root,
                           std::string_view list,
                           const std::string& name,
                           std::string_view key) {
  for (const config::Node& item : root[list].items()) {
    if (item["name"].as_string().value_or("") == name) {
      config::Node node = item[key];
      if (node.present() && !node.is_map()) {
        return fail(item.error(fmt::format("expected a mapping '{}'", key)));
      }
      return node;
    }
  }
  return fail(root.error(fmt::format("'{}' not found in {}", printable(name), list)));
}

std::optional<Error> take_cluster(Taker& cluster, ApiAccess& access) {
  cluster.text("server", access.server);
  cluster.file("certificate-authority", access.ca_file);
  cluster.data("certificate-authority-data", access.ca, access.ca_file);
  cluster.text("tls-server-name", access.tls_server_name);
  cluster.flag("insecure-skip-tls-verify", access.insecure_skip_verify);
  cluster.text("proxy-url", access.proxy_url);
  if (!cluster.error() && access.server.empty()) {
    return cluster.node().error("expected the URL of the API server in 'server'");
  }
  return cluster.error();
}

std::optional<Error> take_exec(const config::Node& node,
                               const std::filesystem::path& directory,
                               ExecPlugin& plugin) {
  Taker exec(node, directory);
  exec.text("command", plugin.command);
  exec.text("apiVersion", plugin.api_version);
  if (exec.error()) {
    return exec.error();
  }
  if (plugin.command.empty()) {
    return node.error("expected the name of a program in 'command'");
  }
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = directory / plugin.command;
  }
  if (const config::Node list = node["args"]; list.present()) {
    auto arguments = list.as_string_list();
    if (!arguments) {
      return std::move(arguments).error();
    }
    plugin.arguments = *std::move(arguments);
  }
  for (const config::Node& item : node["env"].items()) {
    auto name = item["name"].as_string();
    auto value = item["value"].as_string();
    if (!name || !value) {
      return item.error("expected 'name' and 'value'");
    }
    plugin.environment[*std::move(name)] = *std::move(value);
  }
  return std::nullopt;
}

std::optional<Error> take_user(Taker& user, ApiAccess& access) {
  user.file("client-certificate", access.client_cert_file);
  user.data("client-certificate-data", access.client_cert, access.client_cert_file);
  user.file("client-key", access.client_key_file);
  user.data("client-key-data", access.client_key, access.client_key_file);
  user.text("token", access.token);
  user.file("tokenFile", access.token_file);
  user.text("username", access.username);
  user.text("password", access.password);
  if (user.error()) {
    return user.error();
  }
  const bool cert = !access.client_cert.empty() || !access.client_cert_file.empty();
  const bool key = !access.client_key.empty() || !access.client_key_file.empty();
  if (cert != key) {
    return user.node().error(
        "expected both a client certificate and its key, got only one of them");
  }
  const bool known =
      cert || !access.token.empty() || !access.token_file.empty() || !access.username.empty();
  if (known) {
    return std::nullopt;
  }
  if (const config::Node other = user.node()["auth-provider"]; other.present()) {
    return other.error("not supported, use a token, tokenFile, certificate or exec");
  }
  if (const config::Node exec = user.node()["exec"]; exec.present()) {
    return take_exec(exec, user.directory(), access.exec.emplace());
  }
  return std::nullopt;
}

void normalize_server(ApiAccess& access) {
  if (access.server.find("://") == std::string::npos) {
    const bool tls = !access.ca.empty() || !access.ca_file.empty() || !access.client_cert.empty() ||
                     !access.client_cert_file.empty() || access.insecure_skip_verify;
    access.server.insert(0, tls ? "https://" : "http://");
  }
  while (access.server.ends_with('/')) {
    access.server.pop_back();
  }
}

}  // namespace

Result<ApiAccess> parse_kubeconfig(std::string_view text, const std::string& file) {
  if (text.size() > kMaxFileBytes) {
    return fail(ErrorCode::kParse, "{}: longer than {} bytes", file, kMaxFileBytes);
  }
  CEEMS_TRY(root, config::parse_yaml(text, file));
  if (!root.is_map()) {
    return fail(ErrorCode::kParse, "{}: expected a kubeconfig", file);
  }
  const std::filesystem::path directory = std::filesystem::path(file).parent_path();
  const std::string context_name = root["current-context"].as_string().value_or("");
  if (context_name.empty()) {
    return fail(root.error("expected the name of a context in 'current-context'"));
  }
  CEEMS_TRY(context, named(root, "contexts", context_name, "context"));
  ApiAccess access;
  CEEMS_TRY(cluster,
            named(root, "clusters", context["cluster"].as_string().value_or(""), "cluster"));
  Taker cluster_values(cluster, directory);
  if (auto error = take_cluster(cluster_values, access)) {
    return fail(*std::move(error));
  }
  if (const std::string user_name = context["user"].as_string().value_or(""); !user_name.empty()) {
    CEEMS_TRY(user, named(root, "users", user_name, "user"));
    Taker user_values(user, directory);
    if (auto error = take_user(user_values, access)) {
      return fail(*std::move(error));
    }
  }
  normalize_server(access);
  return access;
}

Result<ApiAccess> load_kubeconfig(const std::string& file, const ReadFile& read) {
  CEEMS_TRY_IN("kubeconfig", text, read(file));
  CEEMS_TRY_IN("kubeconfig", access, parse_kubeconfig(text, file));
  return access;
}

std::optional<ApiAccess> in_cluster_access(const std::string& host,
                                           const std::string& port,
                                           const std::string& mount) {
  if (host.empty() || port.empty()) {
    return std::nullopt;
  }
  const bool v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  ApiAccess access;
  access.server = fmt::format("https://{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
  access.ca_file = mount + "/ca.crt";
  access.token_file = mount + "/token";
  return access;
}

}  // namespace ceems::kube
