#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json_cutter.h"
#include "base/utf8.h"
#include "ingest/manager/openpbs/job.h"

namespace {

using ceems::Result;
using ceems::model::Window;

constexpr Window kQstatWindow{.start_ms = 1'767'225'600'000, .end_ms = 1'767'229'200'000};

std::size_t read_qstat(std::string_view text, std::size_t part_size) {
  ceems::ingest::openpbs::JobRules rules;
  rules.now_ms = kQstatWindow.end_ms;
  std::size_t sum = 0;
  ceems::JsonCutter cutter({"Jobs"}, [&](const ceems::JsonCutter::Element& element) -> Result<> {
    const std::string_view id = element.key;
    const std::string_view json = element.json;
    sum = sum * 31 + id.size() + json.size() + 1;
    for (const std::string_view name : {id, std::string_view("12[3].srv")}) {
      const auto job = ceems::ingest::openpbs::parse_job(name, json, rules);
      if (!job || !job->has_value()) {
        continue;
      }
      CEEMS_CHECK((*job)->cpus >= 0 && (*job)->gpus >= 0 && (*job)->memory_bytes >= 0);
      const auto unit =
          ceems::ingest::to_unit(**job, kQstatWindow, kQstatWindow.start_ms, rules.zone);
      if (unit) {
        CEEMS_CHECK(ceems::is_utf8(unit->tags) && ceems::is_utf8(unit->name));
        CEEMS_CHECK(unit->ended_at_ts <= kQstatWindow.end_ms);
        for (const auto& [key, seconds] : unit->total_time_seconds) {
          CEEMS_CHECK(seconds >= 0);
        }
      }
    }
    return {};
  });
  bool good = true;
  while (good && !text.empty()) {
    const std::string_view part = text.substr(0, part_size);
    text.remove_prefix(part.size());
    good = cutter.add(part).has_value();
  }
  return good && cutter.finish() ? sum : 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CEEMS_CHECK(read_qstat(text, 7) == read_qstat(text, size + 1));
  return 0;
}
