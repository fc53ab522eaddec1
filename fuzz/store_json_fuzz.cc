// JSON columns of the database: reading arbitrary content fails only through its result, and what
// is written can be read again. Tags of units are compared without a parser of all JSON.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json_reader.h"
#include "store/json.h"
#include "store/tags.h"

namespace store = ceems::store;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto map = store::parse_metric_map(text); map) {
    // Rounding to 8 decimals may turn a number into an integer, which is printed differently. This
    // happens only once.
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
  // Only a JSON object has tags.
  std::string object;
  if (store::has_tags(text, {{.name = "partition", .values = {"gpu", ""}}}) &&
      !ceems::append_json_object(object, text)) {
    std::abort();
  }
  return 0;
}
