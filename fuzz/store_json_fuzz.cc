// JSON columns of the data base: whatever stands there, reading never fails otherwise than by its
// result, and what is written can be read again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "store/json.h"

namespace store = ceems::store;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto map = store::parse_metric_map(text); map) {
    // Rounding to 8 decimals may make an integer of a number, which has another text. Once.
    const auto rounded = store::parse_metric_map(store::metric_map_text(*map));
    if (!rounded || rounded->size() != map->size()) {
      std::abort();
    }
    const std::string written = store::metric_map_text(*rounded);
    const auto again = store::parse_metric_map(written);
    if (!again || store::metric_map_text(*again) != written) {
      std::abort();
    }
  }
  std::string canonical;
  if (store::append_json(canonical, text)) {
    // Bytes that are no UTF-8 become the escape \ufffd, as Go writes it, which reads as a character
    // of its own. Once.
    std::string second;
    std::string third;
    if (!store::append_json(second, canonical) || !store::append_json(third, second) ||
        second != third) {
      std::abort();
    }
  } else if (!canonical.empty()) {
    std::abort();
  }
  if (const auto list = store::parse_string_list(text); list) {
    const auto clean = store::parse_string_list(store::string_list_text(*list));
    if (!clean || clean->size() != list->size()) {
      std::abort();
    }
    const std::string written = store::string_list_text(*clean);
    const auto again = store::parse_string_list(written);
    if (!again || store::string_list_text(*again) != written) {
      std::abort();
    }
  }
  std::string quoted;
  store::append_json_string(quoted, text);
  std::string same;
  if (!store::append_json(same, quoted) || same.find_first_of("<>&") != std::string::npos) {
    std::abort();
  }
  return 0;
}
