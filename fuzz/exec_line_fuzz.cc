#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "ingest/manager/exec/lines.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace ingest = ceems::ingest;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ingest::ExecLines lines;
  if (!ingest::read_line(text, lines)) {
    CEEMS_CHECK(lines.units.empty());
    return 0;
  }
  for (const ingest::ExecUnit& unit : lines.units) {
    const auto shown = ingest::unit_of(unit, {.start_ms = 900'000, .end_ms = 1'800'000}, {});
    CEEMS_CHECK(!shown || shown->total_time_seconds.at("walltime") >= 0);
  }
  return 0;
}
