// Names of powercap zones (one per line), and of hwmon chips and files.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "host/hwmon.h"
#include "host/powercap.h"
#include "metrics/desc.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> names;
  for (const std::string_view name : ceems::split(text, '\n')) {
    names.emplace_back(name);
    static_cast<void>(ceems::host::parse_hwmon_file(name).has_value());
    static_cast<void>(ceems::host::clean_hwmon_name(name).size());
    if (!ceems::metrics::is_metric_name("ceems_" + ceems::metrics::sanitize_name(name))) {
      std::abort();
    }
  }
  if (ceems::host::number_zones(names).size() != names.size()) {
    std::abort();
  }
  return 0;
}
