// Lists of pods from a Kubernetes API server.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "exporter/k8s/api_client.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto page = ceems::exporter::k8s::parse_pod_page(text)) {
    for (const auto& pod : page->pods) {
      CEEMS_CHECK(!pod.name.empty() && !pod.uid.empty());
    }
  }
  return 0;
}
