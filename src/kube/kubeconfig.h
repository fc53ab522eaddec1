#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::kube {

/// Gives the content of a file. Passed in, because some programs raise a capability for it.
using ReadFile = std::function<Result<std::string>(const std::string& path)>;

/// A program that prints credentials (user.exec).
struct ExecPlugin {
  std::string command;  ///< a name is looked up in PATH; a path is absolute
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::string api_version;  ///< "client.authentication.k8s.io/v1" or v1beta1
};

/// How to reach and talk to the API server of a cluster. Of a value and a file the value counts,
/// but for the token, whose file is newer. Files may change: they are read for each call. Holds
/// secrets: never logged.
struct ApiAccess {
  std::string server{};  ///< "https://10.0.0.1:6443" or with a path, no '/' at the end
  std::string ca{}, ca_file{};
  std::string client_cert{}, client_cert_file{};
  std::string client_key{}, client_key_file{};
  std::string tls_server_name{};
  bool insecure_skip_verify = false;
  std::string token{}, token_file{};
  std::string username{}, password{};
  std::string proxy_url{};
  /// Set where there are no other credentials. Who cannot run it has to refuse.
  std::optional<ExecPlugin> exec{};

  [[nodiscard]] bool has_files() const {
    return !(ca_file.empty() && client_cert_file.empty() && client_key_file.empty() &&
             token_file.empty());
  }
};

/// The current context of a kubeconfig file (client.config of k8s.io/client-go/tools/clientcmd);
/// relative file names in it are relative to `file`. Errors name file and line, never a secret:
/// kInvalidArgument, kParse.
Result<ApiAccess> parse_kubeconfig(std::string_view text, const std::string& file);

/// Reads it and parses it.
Result<ApiAccess> load_kubeconfig(const std::string& file, const ReadFile& read);

/// From inside a pod: the values of KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, and the
/// token and CA in `mount`. Nothing where one of the two is empty: not in a cluster.
std::optional<ApiAccess> in_cluster_access(
    const std::string& host,
    const std::string& port,
    const std::string& mount = "/var/run/secrets/kubernetes.io/serviceaccount");

}  // namespace ceems::kube
