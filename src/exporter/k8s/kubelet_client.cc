#include "exporter/k8s/kubelet_client.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "base/strings.h"
#include "net/client/client.h"
#include "os/privileges.h"

namespace ceems::exporter::k8s {
namespace {

constexpr std::size_t kPrefix = 5;
// An empty request: not compressed, length 0.
constexpr std::string_view kEmptyRequest("\0\0\0\0\0", kPrefix);
constexpr std::string_view kUrl = "http://localhost/v1.PodResourcesLister/List";

Result<std::vector<PodDevices>> read_answer(const net::ClientResponse& answer) {
  if (answer.status != 200) {
    return fail(ErrorCode::kUnavailable, "HTTP status {}", answer.status);
  }
  const std::string* status = net::find_header(answer.headers, "grpc-status");
  if (status != nullptr && *status != "0") {
    const std::string* message = net::find_header(answer.headers, "grpc-message");
    return fail(ErrorCode::kUnavailable, "gRPC status {}{}", printable(*status, 16),
                message == nullptr ? "" : ": " + printable(*message, 200));
  }
  CEEMS_TRY(message, grpc_message(answer.body));
  return parse_pod_resources(message);
}

}  // namespace

Result<std::string_view> grpc_message(std::string_view body) {
  if (body.size() < kPrefix) {
    return fail(ErrorCode::kParse, "expected a gRPC message, got {} bytes", body.size());
  }
  if (body.front() != '\0') {
    return fail(ErrorCode::kParse, "expected an uncompressed gRPC message, got a compressed one");
  }
  std::size_t size = 0;
  for (const char byte : body.substr(1, kPrefix - 1)) {
    size = size << 8U | static_cast<unsigned char>(byte);
  }
  body.remove_prefix(kPrefix);
  if (size != body.size()) {
    return fail(ErrorCode::kParse, "expected a gRPC message of {} bytes, got {}", size,
                body.size());
  }
  return body;
}

bool accessible_to_every_user(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  struct stat info{};
  if (error || ::stat(real.c_str(), &info) != 0 || (info.st_mode & S_IWOTH) == 0) {
    return false;
  }
  for (std::filesystem::path above = real.parent_path();; above = above.parent_path()) {
    if (::stat(above.c_str(), &info) != 0 || (info.st_mode & S_IXOTH) == 0) {
      return false;
    }
    if (above == above.root_path()) {
      return true;
    }
  }
}

Result<std::vector<PodDevices>> list_pod_devices(const std::string& path,
                                                 std::chrono::milliseconds timeout,
                                                 const std::stop_token& stop) {
  net::ClientOptions options;
  options.unix_socket = path;
  options.http2_prior_knowledge = true;
  options.follow_redirects = false;
  options.user_agent = "ceems_exporter";
  options.connect_timeout = timeout;
  options.timeout = timeout;
  options.max_response_bytes = kMaxKubeletAnswer;
  CEEMS_TRY_IN(path, client, net::Client::create(std::move(options)));
  const std::stop_callback on_stop(stop, [&client] { client->cancel(); });
  std::optional<os::RaisedCapabilities> raised;
  if (::access(path.c_str(), W_OK) != 0) {
    raised.emplace(std::initializer_list<os::Capability>{CAP_DAC_OVERRIDE});
  }
  const auto answer =
      client->post(std::string(kUrl), "application/grpc", kEmptyRequest, {{"TE", "trailers"}});
  raised.reset();
  CEEMS_TRY_IN(
      "kubelet at " + path, pods,
      answer ? read_answer(*answer) : Result<std::vector<PodDevices>>(fail(answer.error())));
  return pods;
}

}  // namespace ceems::exporter::k8s
