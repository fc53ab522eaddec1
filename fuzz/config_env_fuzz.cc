// Expands variables and parses durations: any text gives a text or number, or one error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/duration.h"
#include "config/environment.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto expanded = ceems::config::expand_environment(
      text, [](const std::string& name) { return name.size() % 2 == 0 ? name : std::string(); });
  if (expanded && (expanded->size() > size ||
                   (text.find('$') == std::string_view::npos && *expanded != text))) {
    std::abort();  // no value here is longer than its name
  }
  const auto duration = ceems::config::parse_duration(text);
  if (duration && (duration->count() < 0 || ceems::config::go_duration(*duration).empty())) {
    std::abort();
  }
  return 0;
}
