#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/text/node_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto names = ceems::expand_node_list(text);
  if (names) {
    CEEMS_CHECK(names->size() <= 65536);
    for (const auto& name : *names) {
      CEEMS_CHECK(!name.empty() && name.find_first_of("[],") == std::string::npos);
    }
  }
  return 0;
}
