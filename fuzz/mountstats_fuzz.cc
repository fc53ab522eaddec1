// /proc/self/mountstats.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "host/mountstats.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ceems::host::NfsMounts mounts;
  static_cast<void>(ceems::host::parse_mountstats(text, 3, mounts).has_value());
  if (mounts.mounts.size() > 3 || (mounts.left_out > 0 && mounts.mounts.size() < 3)) {
    std::abort();
  }
  for (const ceems::host::NfsMount& mount : mounts.mounts) {
    for (const std::string_view part : {mount.source, mount.mount_point}) {
      if (part.empty() || part.data() < text.data() ||
          part.data() + part.size() > text.data() + text.size()) {
        std::abort();
      }
    }
  }
  return 0;
}
