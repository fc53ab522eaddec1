// Resource quantities of Kubernetes, and times.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/time/rfc3339.h"
#include "kube/quantity.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto quantity = ceems::kube::parse_quantity(text)) {
    CEEMS_CHECK(std::isfinite(*quantity) && *quantity >= 0);
  }
  if (const auto time = ceems::parse_rfc3339_ms(text)) {
    CEEMS_CHECK(*time >= 0);
  }
  return 0;
}
