// Mangled names: any text gives a name within bounds, in every mode.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "exporter/profile/symbol/demangle.h"

using namespace ceems::exporter::profile;  // NOLINT(google-build-using-namespace): one short file

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view name(reinterpret_cast<const char*>(data), size);
  CEEMS_CHECK(demangled(name, DemangleMode::kNone) == name);
  for (const auto mode :
       {DemangleMode::kSimplified, DemangleMode::kTemplates, DemangleMode::kFull}) {
    const std::string found = demangled(name, mode);
    CEEMS_CHECK(found == name || found.size() <= 8192);
  }
  return 0;
}
