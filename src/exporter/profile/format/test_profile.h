#pragma once

#include <string>
#include <utility>
#include <vector>

#include "exporter/profile/format/profile.h"

namespace ceems::exporter::profile {

/// A profile of "app": main calls solve (7 samples), which calls memcpy in the kernel (2), and
/// Python's run (1).
inline Profile small_profile() {
  Profile profile;
  profile.frames = {{.name = "app", .module = "", .kind = FrameKind::kProcess},
                    {.name = "main", .module = "app", .kind = FrameKind::kNative},
                    {.name = "solve", .module = "libsolve.so", .kind = FrameKind::kNative},
                    {.name = "copy_page", .module = "", .kind = FrameKind::kKernel},
                    {.name = "run.py run", .module = "run.py", .kind = FrameKind::kPython}};
  profile.stacks = {{.frames = {2, 1, 0}, .samples = 7},
                    {.frames = {3, 2, 1, 0}, .samples = 2},
                    {.frames = {4, 1, 0}, .samples = 1},
                    {.frames = {0}, .samples = 5}};  // shows no code
  profile.rate = 97;
  profile.started = Clock::SystemTime(std::chrono::seconds(1'767'225'600));
  profile.duration = std::chrono::seconds(30);
  return profile;
}

/// One stack of process "p" with these functions, the outermost first.
inline Profile profile_of(const std::vector<std::string>& names, std::uint64_t samples = 1) {
  Profile profile;
  profile.frames.push_back({.name = "p", .module = "", .kind = FrameKind::kProcess});
  Stack stack{.frames = {0}, .samples = samples};
  for (const std::string& name : names) {
    stack.frames.insert(stack.frames.begin(), static_cast<std::uint32_t>(profile.frames.size()));
    profile.frames.push_back({.name = name, .module = "", .kind = FrameKind::kNative});
  }
  profile.stacks.push_back(std::move(stack));
  return profile;
}

/// `count` different stacks of 20 frames, with 1 to 7 samples each.
inline Profile many_stacks(std::uint32_t count) {
  constexpr std::uint32_t kDepth = 20;
  Profile profile;
  profile.frames.push_back({.name = "many", .module = "", .kind = FrameKind::kProcess});
  for (std::uint32_t i = 0; i < 1000; ++i) {
    profile.frames.push_back(
        {.name = "f" + std::to_string(i), .module = "many", .kind = FrameKind::kNative});
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    Stack stack{.frames = {}, .samples = i % 7 + 1};
    for (std::uint32_t depth = kDepth; depth > 0; --depth) {
      stack.frames.push_back((i * depth + i / 1000) % 1000 + 1);
    }
    stack.frames.push_back(0);
    profile.stacks.push_back(std::move(stack));
  }
  return profile;
}

}  // namespace ceems::exporter::profile
