#include "exporter/gpu/library/amd/amd_boards.h"

#include "exporter/gpu/library/amd/rocm_smi_api.h"

namespace ceems::exporter::gpu {

std::optional<AmdPlace> amd_place(std::uint64_t id) {
  if (rocm::pci_domain(id) > 0xffff) {
    return std::nullopt;
  }
  return AmdPlace{.address = {.domain = static_cast<std::uint16_t>(rocm::pci_domain(id)),
                              .bus = static_cast<std::uint16_t>(rocm::pci_bus(id)),
                              .device = static_cast<std::uint16_t>(rocm::pci_device(id)),
                              .function = static_cast<std::uint16_t>(rocm::pci_function(id))},
                  .partition = rocm::pci_partition(id)};
}

std::optional<double> amd_joules(std::uint64_t count, float microjoules) {
  constexpr double kMicro = 1e-6;
  constexpr double kMaxJoules = 1e18;
  const bool counted = count != ~std::uint64_t{0} && microjoules > 0;
  return counted ? within(static_cast<double>(count) * double{microjoules} * kMicro, kMaxJoules)
                 : std::nullopt;
}

}  // namespace ceems::exporter::gpu
