#include "ingest/manager/k8s/access.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "kube/objects.h"
#include "os/secret.h"

namespace ceems::ingest {
namespace {

constexpr std::chrono::seconds kPluginTimeout{30};
constexpr std::size_t kPluginOutput = std::size_t{1} << 20U;
// New credentials are fetched this long before the old ones expire.
constexpr std::int64_t kRenewBeforeMs = 60'000;

std::string environment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this program sets variables
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Result<std::string> read_file(const std::string& path) {
  return os::read_secret({}, path);
}

/// The information about its caller that a plug-in receives
/// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/).
std::string exec_info(const kube::ExecPlugin& plugin) {
  constexpr std::string_view kBeta = "client.authentication.k8s.io/v1beta1";
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object();
  json.member("apiVersion",
              plugin.api_version == kBeta ? kBeta : "client.authentication.k8s.io/v1");
  json.member("kind", "ExecCredential").key("spec").begin_object().member("interactive", false);
  json.end_object().end_object();
  return text;
}

/// Runs a plug-in and caches the credentials it prints. Thread-safe.
class PluginCredentials {
 public:
  PluginCredentials(os::CommandRunner& runner, const Clock& clock)
      : runner_(runner), clock_(clock) {}

  Result<kube::ExecCredential> get(const kube::ExecPlugin& plugin, const std::stop_token& stop) {
    const MutexLock lock(mutex_);
    const std::int64_t now = clock_.now_ms();
    if (kept_ && kept_->expires_ms - kRenewBeforeMs > now) {
      return *kept_;
    }
    kept_.reset();
    CEEMS_TRY_IN("exec plug-in of the kubeconfig", credential, run(plugin, stop));
    kept_ = credential;
    return credential;
  }

 private:
  Result<kube::ExecCredential> run(const kube::ExecPlugin& plugin, const std::stop_token& stop) {
    os::Command command;
    command.environment = os::process_environment();
    if (plugin.command.find('/') == std::string::npos) {
      CEEMS_TRY(found, os::find_program(plugin.command, command.environment["PATH"]));
      command.path = std::move(found);
    } else {
      std::error_code error;
      command.path = std::filesystem::absolute(plugin.command, error);
    }
    command.arguments = plugin.arguments;
    for (const auto& [name, value] : plugin.environment) {
      command.environment[name] = value;
    }
    command.environment["KUBERNETES_EXEC_INFO"] = exec_info(plugin);
    command.timeout = kPluginTimeout;
    command.max_output_bytes = kPluginOutput;
    CEEMS_TRY(result, runner_.run(command, stop));
    if (result.exit_status != 0) {
      return fail(ErrorCode::kUnavailable, "{}: exit status {}: {}", printable(plugin.command),
                  result.exit_status, printable(trim(result.error_text), 300));
    }
    return kube::parse_exec_credential(result.output);
  }

  os::CommandRunner& runner_;
  const Clock& clock_;
  Mutex mutex_;  // held while the plug-in runs, so that callers wait for its answer
  std::optional<kube::ExecCredential> kept_ CEEMS_GUARDED_BY(mutex_);
};

Result<kube::ApiAccess> find_access(const std::string& kubeconfig_file) {
  if (!kubeconfig_file.empty()) {
    return kube::load_kubeconfig(kubeconfig_file, read_file);
  }
  auto access = kube::in_cluster_access(environment("KUBERNETES_SERVICE_HOST"),
                                        environment("KUBERNETES_SERVICE_PORT"));
  if (!access) {
    return fail(ErrorCode::kInvalidArgument,
                "not in a cluster (KUBERNETES_SERVICE_HOST is not set): "
                "extra_config.kubeconfig_file is needed");
  }
  return *std::move(access);
}

}  // namespace

Result<kube::Connect> k8s_connect(const std::string& kubeconfig_file,
                                  os::CommandRunner& runner,
                                  const Clock& clock) {
  CEEMS_TRY(at_start, find_access(kubeconfig_file));
  CEEMS_TRY(kube::client_options(std::move(at_start), read_file));
  auto plugin = std::make_shared<PluginCredentials>(runner, clock);
  return [kubeconfig_file, plugin](const std::stop_token& stop) -> Result<kube::Connection> {
    CEEMS_TRY(access, find_access(kubeconfig_file));
    if (access.exec) {
      CEEMS_TRY(credential, plugin->get(*access.exec, stop));
      access.token = std::move(credential.token);
      access.client_cert = std::move(credential.client_cert);
      access.client_key = std::move(credential.client_key);
    }
    std::string server = access.server;
    CEEMS_TRY(options, kube::client_options(std::move(access), read_file));
    return kube::Connection{.server = std::move(server), .options = std::move(options)};
  };
}

}  // namespace ceems::ingest
