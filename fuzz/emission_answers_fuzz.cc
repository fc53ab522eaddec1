// Responses of services for emission factors, and the table of countries.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "exporter/emissions/provider.h"
#include "exporter/emissions/service.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace emissions = ceems::exporter::emissions;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& value :
       {emissions::parse_emaps_intensity(text), emissions::parse_rte_intensity(text),
        emissions::parse_watttime_intensity(text)}) {
    if (value && !std::isfinite(*value)) {
      std::abort();
    }
  }
  static_cast<void>(emissions::parse_emaps_zones(text).has_value());
  if (const auto token = emissions::parse_watttime_token(text);
      token && token->find('\n') != std::string::npos) {
    std::abort();
  }
  if (const auto factors = emissions::parse_country_table(text)) {
    for (const emissions::Factor& factor : *factors) {
      if (factor.code.size() != 2 || !(factor.grams_per_kwh >= 0)) {
        std::abort();
      }
    }
  }
  return 0;
}
