// Content and names of Cray pm_counters files.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "host/cray_pm_counters.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(ceems::host::parse_cray_reading(text).has_value());
  if (const auto domain = ceems::host::cray_domain(text)) {
    if (domain->empty() ||
        ceems::host::cray_domain(ceems::host::cray_file(*domain, "energy")) != domain) {
      std::abort();
    }
  }
  return 0;
}
