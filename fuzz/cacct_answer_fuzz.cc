#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "cacct/output/answer.h"
#include "cacct/output/box.h"
#include "cacct/output/chart_lines.h"
#include "cacct/output/check_text.h"
#include "cacct/output/fields.h"
#include "cacct/output/job_list.h"
#include "cacct/output/table.h"
#include "cacct/series/dump_progress.h"
#include "cacct/time_words.h"

/// Answers of a server, progress files and user input must neither break the program nor send a
/// control character to a terminal.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace cacct = ceems::cacct;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto check = [](const std::string& out) {
    for (const char c : out) {
      CEEMS_CHECK(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F));
    }
  };
  if (const auto jobs = cacct::parse_job_lines(std::string(text))) {
    check(cacct::draw_job_list(*jobs, *jobs, {.width = 80, .totals = true, .now = 1'773'153'020}));
  }
  if (auto lines = cacct::parse_chart_lines(std::string(text))) {
    for (const std::string& strip : cacct::gpu_strips(
             std::move(*lines), {.from_ms = 1'773'150'000'000, .to_ms = 1'773'153'020'000}, 80)) {
      check(strip);
    }
  }
  for (const auto show : {cacct::check_text, cacct::check_line}) {
    if (const auto shown = show(std::string(text), {.name = text, .prefix = "#SBATCH "})) {
      check(*shown);
    }
  }
  (void)cacct::parse_prices(std::string(text));
  if (const auto records = cacct::parse_answer(std::string(text))) {
    const std::vector<cacct::Field> fields(cacct::server_fields().begin(),
                                           cacct::server_fields().end());
    const auto table = cacct::make_table(fields, *records, *records, {.totals = true});
    for (const std::string& out : {cacct::draw_box(table), cacct::to_csv(table),
                                   cacct::to_parsable(table, true), cacct::to_markdown(table)}) {
      check(out);
    }
  }
  if (const auto progress = cacct::parse_progress(text)) {
    const auto again = cacct::parse_progress(cacct::to_json(*progress));
    CEEMS_CHECK(again && again->series.size() == progress->series.size());
  }
  (void)cacct::parse_time(text, 1'773'153'020);
  (void)cacct::parse_format(text, cacct::server_fields());
  return 0;
}
