// Paths of cgroups: unescaping, the matchers of all managers, identifiers.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/strings.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "host/cgroup/cgroup.h"

using namespace ceems;            // NOLINT(google-build-using-namespace): one short file
using namespace ceems::exporter;  // NOLINT(google-build-using-namespace): one short file

namespace {

void follow(const UnitMatcher& matcher, std::string_view text) {
  DirectoryMatch match{.kind = DirectoryMatch::Kind::kDescend};
  std::string path = matcher.start();
  while (!text.empty() && match.kind != DirectoryMatch::Kind::kSkip) {
    const std::string_view name = take_until(text, '/');
    if (name.empty()) {
      continue;
    }
    path += '/';
    path += name;
    match = matcher.match(path, name, match);
    if (match.kind == DirectoryMatch::Kind::kUnit) {
      const std::string uuid = UnitMatcher::uuid_of(match, path);
      CEEMS_CHECK(!uuid.empty() && uuid.size() <= UnitMatcher::kMaxUuid);
      CEEMS_CHECK(uuid.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789._:@+-") == std::string::npos);
      return;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(host::unescape_path(text));
  static const auto kSlurmV1 = slurm_matcher(host::CgroupMode::kLegacy);
  static const auto kSlurmV2 = slurm_matcher(host::CgroupMode::kUnified);
  static const auto kPatterns = *pattern_matcher({}, host::CgroupMode::kUnified, {.slurm = true});
  follow(*kSlurmV1, text);
  follow(*kSlurmV2, text);
  static const auto kLibvirt = libvirt_matcher();
  static const auto kPods = k8s_matcher();
  follow(*kPatterns, text);
  follow(*kLibvirt, text);
  follow(*kPods, text);
  if (size < 256) {  // patterns come from the administrator, but must not crash either
    if (const auto own = pattern_matcher({std::string(text)}, host::CgroupMode::kLegacy, {})) {
      follow(**own, "a/b/c.service");
    }
  }
  return 0;
}
