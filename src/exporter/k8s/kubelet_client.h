#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "exporter/k8s/pod_resources.h"

namespace ceems::exporter::k8s {

/// Maximum size of the kubelet's answer. That of a node with 500 pods of 64 devices each has 2 MiB.
inline constexpr std::size_t kMaxKubeletAnswer = std::size_t{32} << 20U;

/// Gets the devices of all pods from the kubelet: method List of v1.PodResourcesLister, a unary
/// gRPC call over HTTP/2 (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md) at the
/// Unix socket `path`. If the user may not open the socket, CAP_DAC_OVERRIDE is raised during the
/// call. Errors: kUnavailable, kTimeout, kParse; each names the socket.
Result<std::vector<PodDevices>> list_pod_devices(const std::string& path,
                                                 std::chrono::milliseconds timeout,
                                                 const std::stop_token& stop);

/// The message in the body of a gRPC answer with one message. The five bytes before it say that it
/// is not compressed, and its length.
Result<std::string_view> grpc_message(std::string_view body);

/// Whether every user may open the socket at `path`, so that no capability is needed.
bool accessible_to_every_user(const std::string& path);

}  // namespace ceems::exporter::k8s
