// Result files of 'validate energy', pages of exporters, and answers of meters: never a crash, and
// what is accepted survives a round trip and has finite errors.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tool/validate/check.h"
#include "tool/validate/meter.h"
#include "tool/validate/page.h"

namespace {

namespace validate = ceems::tool::validate;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void use_record(std::string_view text) {
  require(!validate::check_record(text) || validate::parse_record(text));
  auto file = validate::parse_record(text);
  if (!file) {
    require(!file.error().message.empty());
    return;
  }
  const std::string written = validate::file_text(*file);
  const auto again = validate::parse_record(written);
  require(again && validate::file_text(*again) == written);
  static_cast<void>(validate::shortcomings_of(file->record));
  const auto outcomes = validate::outcomes_of(file->record);
  if (!outcomes) {
    return;
  }
  file->record.errors = validate::errors_of(*outcomes);
  for (const auto& error : file->record.errors) {
    require(std::isfinite(error.bias) && error.error >= std::abs(error.bias) - 0.1);
  }
  const validate::CheckedRecord checked{.file = *file, .outcomes = *outcomes, .shortcomings = {}};
  require(!validate::report_text(checked).empty() && !validate::summary_text(checked).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  use_record(text);
  if (const auto readings = validate::parse_csv_readings(text, 0)) {
    require(!readings->empty() && readings->front().watts > 0);
  }
  if (const auto page = validate::parse_exporter_page(text)) {
    require(!page->node.empty());
  }
  if (const auto watts = validate::redfish_watts(text)) {
    require(*watts > 0 && *watts <= validate::kMaxMeterWatts);
  }
  return 0;
}
