// The mappings, perf maps and kernel symbols of the profiler: any text gives sorted ranges.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "exporter/profile/symbol/perf_map.h"
#include "exporter/profile/symbol/process_maps.h"

using namespace ceems::exporter::profile;  // NOLINT(google-build-using-namespace): one short file

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ProcessMaps maps = parse_maps(text);
  std::uint64_t end = 0;
  for (const Mapping& mapping : maps.mappings) {
    CEEMS_CHECK(mapping.start >= end && mapping.end > mapping.start);
    end = mapping.end;
    CEEMS_CHECK(maps.find(mapping.start) == &mapping && maps.find(mapping.end - 1) == &mapping);
  }
  const PerfMap perf_map = PerfMap::parse(text);
  const KernelSymbols kernel = KernelSymbols::parse(text);
  for (std::uint64_t address = 1; address != 0; address <<= 1U) {
    for (const auto& name : {perf_map.find(address), kernel.find(address)}) {
      CEEMS_CHECK(!name || name->size() <= size);
    }
  }
  return 0;
}
