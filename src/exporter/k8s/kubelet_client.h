#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "exporter/k8s/pod_resources.h"

namespace ceems::exporter::k8s {

/// A longer answer of the kubelet is refused; a node with 500 pods and 64 devices each has 2 MiB.
inline constexpr std::size_t kMaxKubeletAnswer = std::size_t{32} << 20U;

/// Asks the kubelet which devices its pods have: method List of v1.PodResourcesLister, a gRPC call
/// without streams over HTTP/2 (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md) at
/// the unix socket `path`. Where the user may not reach the socket CAP_DAC_OVERRIDE is raised
/// around the call. Errors: kUnavailable, kTimeout, kParse; each names the socket.
Result<std::vector<PodDevices>> list_pod_devices(const std::string& path,
                                                 std::chrono::milliseconds timeout,
                                                 const std::stop_token& stop);

/// The message in the body of a gRPC answer with one message: five bytes in front of it say that it
/// is not compressed, and its length.
Result<std::string_view> grpc_message(std::string_view body);

/// True where every user may reach the socket at `path`: no capability is needed for it.
bool everybody_reaches(const std::string& path);

}  // namespace ceems::exporter::k8s
