#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "exporter/profile/format/profile.h"

namespace ceems::exporter::profile {

enum class PprofUse : std::uint8_t {
  /// What CEEMS 0.10.2 pushes: the time is the end of the profile, and there is no duration.
  kPush,
  /// The time is the start of the profile, and the duration is given, which `go tool pprof` shows.
  kFile,
};

/// The message perftools.profiles.Profile
/// (https://github.com/google/pprof/blob/main/proto/profile.proto). Samples count nanoseconds of
/// CPU time. Locations have the name of their function and nothing else; frames with the same name
/// share one. All indices of the profile's stacks must be valid.
std::string encode_pprof(const Profile& profile, PprofUse use);

/// The same, compressed with gzip, which is the form of files and of pushed profiles.
Result<std::string> pprof(const Profile& profile, PprofUse use);

}  // namespace ceems::exporter::profile
