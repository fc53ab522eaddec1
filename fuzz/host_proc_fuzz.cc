// The parsers of /proc/stat, /proc/meminfo and /proc/cpuinfo: any text gives a value or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "host/proc.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(ceems::host::parse_stat(text).has_value());
  static_cast<void>(ceems::host::parse_cpuinfo(text).has_value());
  std::vector<ceems::host::MeminfoLine> lines;
  static_cast<void>(ceems::host::parse_meminfo(text, lines).has_value());
  return 0;
}
