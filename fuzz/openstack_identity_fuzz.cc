#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "ingest/manager/openstack/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ceems::ingest::openstack;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* key : {"users", "projects"}) {
    if (const auto page = parse_named(text, key)) {
      for (const auto& item : page->items) {
        CEEMS_CHECK(!item.id.empty() && ceems::is_utf8(item.id));
        CEEMS_CHECK(!item.name.empty() && ceems::is_utf8(item.name));
      }
    }
  }
  (void)parse_one_named(text, "user");
  if (const auto lifetime = token_lifetime(text, 1'767'225'600'000)) {
    CEEMS_CHECK(*lifetime >= 0 && *lifetime <= 86'400);
  }
  CEEMS_CHECK(ceems::is_utf8(error_message(text)));
  return 0;
}
