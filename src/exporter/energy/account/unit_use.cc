#include "exporter/energy/account/unit_use.h"

#include <algorithm>

namespace ceems::exporter::energy {

void UnitUse::take(const UnitStats& stats) {
  if (stats.memory_shmem_bytes) {
    shmem_bytes_ = static_cast<double>(*stats.memory_shmem_bytes);
  }
  peak_bytes_ = std::max(peak_bytes_, stats.memory_held_bytes);
}

std::optional<double> UnitUse::memory_peak_bytes() const {
  // Every process holds some memory, so 0 means that it is not counted.
  return peak_bytes_ > 0 ? std::optional(static_cast<double>(peak_bytes_)) : std::nullopt;
}

}  // namespace ceems::exporter::energy
