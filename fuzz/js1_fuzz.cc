#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "report/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace report = ceems::report;
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)report::parse_js1(text);
  const auto read = report::parse_js1_json(text);
  if (!read) {
    return 0;
  }
  // What was read is written, and read again as the same.
  report::Report one;
  one.nodes = read->nodes;
  const std::string json = report::to_js1_json(one);
  const auto again = report::parse_js1_json(json);
  if (again) {  // names are cut at their first dot, so some become empty
    one.nodes = again->nodes;
    CEEMS_CHECK(report::to_js1_json(one) == json);
  }
  return 0;
}
