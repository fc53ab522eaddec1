#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "base/check.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "ingest/manager/slurm/sacct.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ceems::ingest;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ceems::model::Window window{.start_ms = 1'767'225'600'000, .end_ms = 1'767'229'200'000};
  const auto check = [window](const SlurmJob& job) {
    const auto unit = to_unit(job, window, ceems::TimeZone());
    if (unit) {
      CEEMS_CHECK(ceems::is_utf8(unit->tags) && ceems::is_utf8(unit->name));
      CEEMS_CHECK(unit->ended_at_ts <= window.end_ms);
      for (const auto& [name, seconds] : unit->total_time_seconds) {
        CEEMS_CHECK(seconds >= 0);
      }
    }
  };
  for (const char* delimiter : {"|", "|5f00ba11|"}) {
    SacctReader reader(delimiter, MemoryRule::kTruncated, check);
    std::set<Membership> associations;
    ProjectLeads leads;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = ceems::take_until(rest, '\n');
      reader.add_line(line);
      add_association_line(line, associations);
      static_cast<void>(add_coordinator_line(line, leads));
    }
    (void)reader.finish();
  }
  return 0;
}
