#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "ingest/manager/openstack/json.h"
#include "ingest/manager/openstack/units.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ceems::ingest::openstack;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)parse_flavors(text);
  (void)parse_utc(text);
  const auto page = parse_servers(text);
  if (!page) {
    return 0;
  }
  // Two windows, so that the second uses what the first has kept.
  ServerHistory history;
  for (const std::int64_t start : {1'767'225'600'000, 1'767'229'200'000}) {
    const ceems::model::Window window{.start_ms = start, .end_ms = start + 3'600'000};
    history.begin(window);
    for (const auto& server : page->servers) {
      for (const auto& unit : to_units(server, "p", "u", window, ceems::TimeZone(), history)) {
        CEEMS_CHECK(!unit.uuid.empty() && ceems::is_utf8(unit.name));
        CEEMS_CHECK(ceems::is_utf8(unit.tags) && ceems::is_utf8(unit.allocation));
        CEEMS_CHECK(unit.started_at_ts >= 0 && unit.ended_at_ts <= window.end_ms);
        const double walltime = unit.total_time_seconds.at("walltime");
        CEEMS_CHECK(walltime >= 0 && walltime <= 3600);
      }
    }
  }
  return 0;
}
