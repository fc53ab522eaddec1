// All parsers of the output of rdma(8), on the same text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "exporter/rdma/command_reader.h"

using namespace ceems::exporter::rdma;  // NOLINT(google-build-using-namespace): one short file

namespace {

template <typename Records>
void check(const Records& records, std::size_t size) {
  CEEMS_CHECK(records.size() <= size);
  for (const auto& record : records) {
    CEEMS_CHECK(record.pid > 0 && !record.device.empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(parse_regions(text), size);
  check(parse_queues(text), size);
  check(parse_pairs(text), size);
  check(parse_counters(text), size);
  for (const LinkMode& mode : parse_modes(text)) {
    CEEMS_CHECK(mode.link.starts_with("mlx"));
  }
  return 0;
}
