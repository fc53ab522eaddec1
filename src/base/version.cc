#include "base/version.h"

#include <fmt/format.h>

#include "base/version_data.h"

namespace ceems {

const Version& version() {
  static constexpr Version kVersion{
      .version = CEEMS_VERSION,
      .revision = CEEMS_REVISION,
      .branch = CEEMS_BRANCH,
      .compiler = CEEMS_COMPILER,
#if defined(__x86_64__)
      .platform = "linux/amd64",
#elif defined(__aarch64__)
      .platform = "linux/arm64",
#else
      .platform = "linux/unknown",
#endif
  };
  return kVersion;
}

std::string version_text(std::string_view program) {
  const Version& v = version();
  return fmt::format(
      "{}, version {} (branch: {}, revision: {})\n"
      "  compiler:         {}\n"
      "  platform:         {}\n",
      program, v.version, v.branch, v.revision, v.compiler, v.platform);
}

}  // namespace ceems
