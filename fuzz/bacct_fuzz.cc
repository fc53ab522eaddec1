#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "ingest/manager/batch/text.h"
#include "ingest/manager/lsf/job.h"
#include "jobscript/amounts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ceems::ingest;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ceems::model::Window window{.start_ms = 1'767'225'600'000, .end_ms = 1'767'229'200'000};
  for (const char* const zone : {"UTC", "Europe/Paris"}) {
    const lsf::Times times{.zone = ceems::TimeZone::find(zone).value(), .now_ms = window.end_ms};
    lsf::BacctReader reader(times, [&](const lsf::FinishedJob& found) {
      CEEMS_CHECK(!found.job.id.empty() && found.job.start_ms != 0 && found.job.end_ms != 0);
      CEEMS_CHECK(found.job.cpus >= 0 && found.job.gpus >= 0 && found.job.memory_bytes >= 0);
      const auto unit = to_unit(found.job, window, window.start_ms, times.zone);
      if (unit) {
        CEEMS_CHECK(ceems::is_utf8(unit->tags) && ceems::is_utf8(unit->name));
        CEEMS_CHECK(unit->ended_at_ts <= window.end_ms);
        for (const auto& [name, seconds] : unit->total_time_seconds) {
          CEEMS_CHECK(seconds >= 0);
        }
      }
    });
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = ceems::take_until(rest, '\n');
      reader.add_line(line);
      (void)parse_ctime(line, times.zone, times.now_ms);
      CEEMS_CHECK(ceems::jobscript::parse_size(line, 1).value_or(0) >= 0);
      CEEMS_CHECK(ceems::jobscript::reserved_memory(line, 2, 4) >= 0);
    }
    reader.finish();
  }
  return 0;
}
