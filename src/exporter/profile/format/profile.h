#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace ceems::exporter::profile {

/// Where a frame comes from. Output formats may colour or mark frames by it.
enum class FrameKind : std::uint8_t {
  kProcess,  ///< the outermost frame: the name of the process (comm)
  kNative,
  kPython,
  kJit,  ///< code that a runtime compiled and described in a perf map
  kKernel,
};

struct Frame {
  std::string name;  ///< of the function; names that cannot be found are "[unknown]" or the module
  std::string module;  ///< file name of the binary or script; may be empty
  FrameKind kind = FrameKind::kNative;

  friend auto operator<=>(const Frame&, const Frame&) = default;
};

/// Samples with the same stack.
struct Stack {
  std::vector<std::uint32_t> frames;  ///< indices into Profile::frames, the leaf first
  std::uint64_t samples = 0;
};

/// The CPU samples of one process, or of several. Names are hostile: a job chooses them.
struct Profile {
  std::vector<Frame> frames;
  std::vector<Stack> stacks;
  unsigned rate = 97;  ///< samples per second of CPU time
  Clock::SystemTime started{};
  std::chrono::nanoseconds duration{0};
};

}  // namespace ceems::exporter::profile
