// Call frame information of the profiler: any bytes, as .eh_frame and as .debug_frame, give rows in
// order.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "exporter/profile/symbol/unwind_table.h"

using namespace ceems::exporter::profile;  // NOLINT(google-build-using-namespace): one short file

namespace {

void check(const FrameSection& section, const UnwindLimits& limits) {
  const UnwindTable table = unwind_rows(section, 0, limits);
  CEEMS_CHECK(!table.rows.empty() && table.rows.front().pc == 0);
  CEEMS_CHECK(table.rows.size() <= limits.rows && table.functions <= limits.functions);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const UnwindRow& row = table.rows[i];
    CEEMS_CHECK(i == 0 || row.pc > table.rows[i - 1].pc);
    CEEMS_CHECK(row.cfa <= cfa_rule::kRspDerefPlus8 && row.rbp <= rbp_rule::kAtRsp);
    CEEMS_CHECK(table.find(row.pc) == &row);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check({.bytes = bytes, .address = 0x2000}, {});
  check({.bytes = bytes, .address = 0x2000, .has_end = false}, {});
  check({.bytes = bytes, .is_debug_frame = true}, {});
  check({.bytes = bytes, .address = 0x2000}, {.rows = 10, .functions = 3});
  return 0;
}
