// The list of GPUs that the exporter prints for itself.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "exporter/gpu/inventory/library_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace gpu = ceems::exporter::gpu;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto devices = gpu::parse_device_list(text)) {
    const auto again = gpu::parse_device_list(gpu::device_list_text(*devices));
    CEEMS_CHECK(again && again->size() == devices->size());
  }
  return 0;
}
