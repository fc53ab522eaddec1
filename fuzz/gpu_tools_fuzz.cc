// All parsers of the output of vendor tools and of the kernel's description of AMD GPUs, on the
// same text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "exporter/gpu/inventory/device_names.h"
#include "exporter/gpu/inventory/sysfs.h"
#include "exporter/gpu/inventory/vendor_tools.h"
#include "exporter/gpu/library/amd/amd_boards.h"

using namespace ceems::exporter::gpu;  // NOLINT(google-build-using-namespace): one short file

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(parse_amd_metrics(text));
  const auto uuids = parse_nvidia_list(text);
  const auto vgpus = parse_vgpu_query(text);
  for (const auto& result : {parse_nvidia_query(text), parse_amd_smi(text), parse_rocm_smi(text)}) {
    if (!result) {
      CEEMS_CHECK(result.error().code == ceems::ErrorCode::kParse);
      CEEMS_CHECK(result.error().message.size() < 1024);
      continue;
    }
    auto devices = *result;
    std::size_t parts = 0;
    for (const auto& device : devices) {
      CEEMS_CHECK(device.split == device.index.empty());
      CEEMS_CHECK(device.split || device.instances.empty());
      CEEMS_CHECK(device.address.has_value() || device.path_name.empty());
      parts += 1 + device.instances.size();
    }
    CEEMS_CHECK(parts <= size);
    set_mig_uuids(uuids, devices);
    set_mdevs(vgpus, devices);
  }
  const auto node = parse_kfd_properties(text);
  CEEMS_CHECK(!node || node->render_minor != 0);
  const auto address = parse_pci_address(text);
  CEEMS_CHECK(!address || parse_pci_address(to_string(*address)) == address);
  static_cast<void>(gpu_vendor(text, text));
  static_cast<void>(sm_count_of(text));
  return 0;
}
