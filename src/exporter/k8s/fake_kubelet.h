#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace ceems::exporter::k8s {

/// A length-delimited field of a protocol buffers message: text or an inner message.
std::string proto_field(unsigned number, std::string_view bytes);
/// PodResources with one container that has one device, as a field of ListPodResourcesResponse.
std::string proto_pod(std::string_view name,
                      std::string_view name_space,
                      const std::vector<std::string>& device_ids);
/// An uncompressed gRPC message.
std::string grpc_frame(std::string_view message);

/// A kubelet's socket for tests: HTTP/2 without TLS, with only what a unary gRPC call needs (RFC
/// 9113; header blocks by RFC 7541 without compression).
class FakeKubelet {
 public:
  enum class Manner {
    kAnswers,  ///< with `body` and grpc-status `status`
    kHangs,    ///< after it has accepted the connection
    kBabbles,  ///< sends `body` instead of HTTP/2
  };
  struct Script {
    Manner manner = Manner::kAnswers;
    std::string body = {};
    std::string status = "0";
  };

  FakeKubelet(const std::string& path, Script script);
  FakeKubelet(const FakeKubelet&) = delete;
  FakeKubelet& operator=(const FakeKubelet&) = delete;
  ~FakeKubelet();

  /// Number of answered calls.
  [[nodiscard]] int calls() const { return calls_; }

 private:
  void run(const std::stop_token& stop);
  void serve(int fd, const std::stop_token& stop);
  void answer(int fd, std::uint32_t stream);

  Script script_;
  UniqueFd listener_;
  std::atomic<int> calls_ = 0;
  std::jthread thread_;
};

}  // namespace ceems::exporter::k8s
