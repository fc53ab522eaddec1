#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
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

/// Longer names are cut. Names of C++ templates can be of any length.
inline constexpr std::size_t kMaxNameBytes = 2048;

/// A name as all formats show it: one line of valid UTF-8 of at most kMaxNameBytes. Line ends and
/// tabs become spaces. Other control characters, and those that change the direction of the text
/// after them, become U+FFFD. A cut name ends with "…".
std::string shown_name(std::string_view name);

/// The name of a frame. A process without a name is "pid_unknown", as in CEEMS 0.10.2, and any
/// other frame without a name "[unknown]".
std::string shown_name(const Frame& frame);

/// Whether a stack has samples and shows more than the name of its process. All formats leave out
/// stacks that do not.
bool shows_code(const Profile& profile, const Stack& stack);

/// Whether any stack shows code.
bool shows_code(const Profile& profile);

}  // namespace ceems::exporter::profile
