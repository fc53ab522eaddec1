#include "metrics/build_info.h"

#include <string>

#include "base/strings.h"
#include "base/version.h"

namespace ceems::metrics {

Desc build_info(std::string_view program) {
  return {std::string(program) + "_build_info",
          "Version of the program; the value is always 1.",
          Type::kGauge,
          {"branch", "goarch", "goos", "goversion", "revision", "tags", "version"}};
}

void add_build_info(Sink& sink, const Desc& desc) {
  const Version& about = version();
  std::string_view platform = about.platform;
  const std::string_view system = take_until(platform, '/');
  sink.add(desc, 1, {about.branch, platform, system, "", about.revision, "", about.version});
}

}  // namespace ceems::metrics
