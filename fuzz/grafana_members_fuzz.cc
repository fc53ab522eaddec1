#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "ingest/grafana_admins.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto members = ceems::ingest::parse_team_members(text)) {
    for (const auto& name : *members) {
      CEEMS_CHECK(!name.empty() && ceems::is_utf8(name));
    }
  }
  return 0;
}
