#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json_cutter.h"
#include "base/utf8.h"
#include "ingest/manager/slurm/slurmrest_answer.h"

namespace {

using ceems::Result;
using ceems::model::Window;

constexpr Window kWindow{.start_ms = 1'767'225'600'000, .end_ms = 1'767'229'200'000};

/// Runs every reader on every element. The result depends on everything that was cut out.
std::size_t read_slurmrest(std::string_view text, std::size_t part_size) {
  std::size_t sum = 0;
  ceems::JsonCutter cutter(
      {"jobs", "associations", "accounts", "errors"},
      [&sum](const ceems::JsonCutter::Element& element) -> Result<> {
        const std::string_view json = element.json;
        sum = sum * 31 + element.member.size() + json.size() + 1;
        if (const auto found = ceems::ingest::parse_rest_job(json)) {
          const auto unit = ceems::ingest::to_unit(found->job, kWindow, ceems::TimeZone());
          if (unit) {
            CEEMS_CHECK(ceems::is_utf8(unit->tags) && ceems::is_utf8(unit->name));
            CEEMS_CHECK(unit->ended_at_ts <= kWindow.end_ms);
            for (const auto& [name, seconds] : unit->total_time_seconds) {
              CEEMS_CHECK(seconds >= 0);
            }
          }
        }
        (void)ceems::ingest::parse_rest_association(json);
        (void)ceems::ingest::parse_rest_account(json);
        CEEMS_CHECK(ceems::is_utf8(ceems::ingest::parse_rest_problem(json).text));
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
  CEEMS_CHECK(read_slurmrest(text, 7) == read_slurmrest(text, size + 1));
  return 0;
}
