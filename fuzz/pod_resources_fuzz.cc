// Responses of the kubelet: gRPC frames and protocol buffers.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "exporter/k8s/kubelet_client.h"
#include "exporter/k8s/pod_devices.h"
#include "exporter/k8s/pod_resources.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ceems::exporter::k8s;  // NOLINT(google-build-using-namespace): one short function
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto message = grpc_message(text)) {
    CEEMS_CHECK(message->size() + 5 == size);
  }
  const auto pods = parse_pod_resources(text);
  if (pods) {
    for (const PodDevices& pod : *pods) {
      CEEMS_CHECK(!pod.device_ids.empty());
    }
    const auto claims = join_pods(*pods, {{"ns", "pod", "u-1"}, {"", "", "u-2"}});
    CEEMS_CHECK(claims.size() <= 2);
  }
  return 0;
}
