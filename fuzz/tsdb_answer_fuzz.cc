#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "tsdb/answer.h"
#include "tsdb/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ceems::tsdb;  // NOLINT(google-build-using-namespace): one function
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto answer = parse_query_answer(text)) {
    for (const auto& series : answer->series) {
      CEEMS_CHECK(!series.samples.empty());
      for (std::size_t i = 1; i < series.samples.size(); ++i) {
        CEEMS_CHECK(series.samples[i - 1].time_ms <= series.samples[i].time_ms);
      }
    }
  }
  (void)parse_string_list_answer(text);
  (void)parse_series_answer(text);
  (void)parse_targets_answer(text);
  (void)parse_status_answer(text);
  Settings settings;
  apply_config(text, settings);
  apply_retention(text, settings);
  CEEMS_CHECK(settings.scrape_interval.count() > 0);
  return 0;
}
