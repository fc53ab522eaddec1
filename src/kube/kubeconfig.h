#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::kube {

/// Returns the content of a file. It is passed in, because some programs raise a capability for it.
using ReadFile = std::function<Result<std::string>(const std::string& path)>;

/// A program that prints credentials (user.exec).
struct ExecPlugin {
  std::string command;  ///< a plain name is looked up in PATH; paths are absolute
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::string api_version;  ///< "client.authentication.k8s.io/v1" or v1beta1
};

/// How to reach the API server of a cluster. Where a file is set, its content counts. If a
/// kubeconfig gives both a value and a file, parse_kubeconfig() drops the file, except for the
/// token, whose file is more recent. Files may change, so they are read for each call. Contains
/// secrets: never log it.
struct ApiAccess {
  std::string server{};  ///< "https://10.0.0.1:6443", maybe with a path, without '/' at the end
  std::string ca{}, ca_file{};
  std::string client_cert{}, client_cert_file{};
  std::string client_key{}, client_key_file{};
  std::string tls_server_name{};
  bool insecure_skip_verify = false;
  std::string token{}, token_file{};
  std::string username{}, password{};
  std::string proxy_url{};
  /// Set only if there are no other credentials. A program that cannot run it must report an error.
  std::optional<ExecPlugin> exec{};

  [[nodiscard]] bool has_files() const {
    return !(ca_file.empty() && client_cert_file.empty() && client_key_file.empty() &&
             token_file.empty());
  }
};

/// Parses the current context of a kubeconfig file (client.config of k8s.io/client-go/tools/
/// clientcmd). Relative file names in it are relative to `file`. Errors name file and line, never a
/// secret: kInvalidArgument, kParse.
Result<ApiAccess> parse_kubeconfig(std::string_view text, const std::string& file);

/// Reads a kubeconfig file and parses it.
Result<ApiAccess> load_kubeconfig(const std::string& file, const ReadFile& read);

/// The access that a pod has: `host` and `port` are the values of KUBERNETES_SERVICE_HOST and
/// KUBERNETES_SERVICE_PORT; token and CA are files below `mount`. Nothing if host or port is empty,
/// because the program then does not run in a cluster.
std::optional<ApiAccess> in_cluster_access(
    const std::string& host,
    const std::string& port,
    const std::string& mount = "/var/run/secrets/kubernetes.io/serviceaccount");

}  // namespace ceems::kube
