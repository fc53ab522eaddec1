#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tsdb/query_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto query = ceems::tsdb::QueryTemplate::parse(text);
  if (query) {
    // All variables are replaced, and nothing else.
    const std::string rendered = query->render({});
    CEEMS_CHECK(rendered.size() <= text.size());
    CEEMS_CHECK(text.find("{{") != std::string_view::npos || rendered == text);
  }
  return 0;
}
