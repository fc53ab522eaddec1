#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "exporter/profile/format/profile.h"
#include "exporter/profile/sampler/sample.h"
#include "exporter/profile/symbol/perf_map.h"
#include "exporter/profile/symbol/symbolizer.h"

namespace ceems::exporter::profile {

/// What a native frame is to a Python program.
enum class NativeRole : std::uint8_t {
  kCode,         ///< anything else: functions of extensions and C libraries
  kEval,         ///< runs Python frames: _PyEval_EvalFrameDefault
  kCall,         ///< passes calls from one to the other, or is of the interpreter without a name
  kInterpreter,  ///< another function of the interpreter
  kStart,        ///< starts a program or a thread
  kUnnamed,      ///< not of the interpreter, and without a name
};

/// @param function  name in the binary; its path if it has none
/// @param interpreter  path of the binary that contains the interpreter
NativeRole native_role(std::string_view function,
                       std::string_view module,
                       std::string_view interpreter);

/// Frames of a stack, the leaf first. `frame` is any number that names a frame.
struct NativePart {
  std::uint32_t frame = 0;
  NativeRole role = NativeRole::kCode;
};
struct PythonPart {
  std::uint32_t frame = 0;
  bool entry = false;  ///< the outermost of those that one kEval runs
};

/// Gives the role kEval to the native frames that contain these addresses, and takes it from
/// others: better than names, which stripped binaries do not have.
/// @param stack  stack pointers of the native frames
/// @param entries  addresses on the stack, ascending
/// @return whether the first entry was found; otherwise nothing was changed
bool mark_evals(std::span<NativePart> native,
                std::span<const std::uint64_t> stack,
                std::span<const std::uint64_t> entries);

/// One stack of both, the leaf first: Python's frames take the place of the kEval frames that ran
/// them, and C functions that Python called stay inside of them. Left out: what passes calls on,
/// and everything of the interpreter outside of the outermost Python frame, which is the same for
/// every program. Without Python frames the native ones are returned.
/// @param from_outermost  match the outermost frames of both, and not those at the leaf
std::vector<std::uint32_t> merge_python(std::span<const NativePart> native,
                                        std::span<const PythonPart> python,
                                        bool from_outermost);

/// Whose profile it is.
struct ProfileOwner {
  std::uint64_t unit = 0;  ///< Sample::unit
  pid_t pid = 0;

  friend auto operator<=>(const ProfileOwner&, const ProfileOwner&) = default;
};

/// Turns samples into profiles. Addresses are named when a sample arrives, because the process may
/// end before the profile is fetched. Not thread-safe.
class ProfileBuilder {
 public:
  /// `kernel` may be null; kernel frames are then "[kernel]". Both must outlive the builder.
  ProfileBuilder(Symbolizer& symbolizer, const KernelSymbols* kernel, unsigned rate);

  /// From now on. The symbols must outlive the builder.
  void name_kernel_by(const KernelSymbols& kernel) { kernel_ = &kernel; }

  void add(const Sample& sample);
  /// The profiles of the samples since the last call. A process that changes to another unit, or
  /// whose number goes to a process of another unit, has several profiles.
  std::map<ProfileOwner, Profile> take();
  /// The same as one profile of all processes.
  Profile take_all();

 private:
  struct LessFrame {
    bool operator()(const Frame& a, const Frame& b) const { return a < b; }
  };
  /// A profile that grows.
  struct Growing {
    stack_image image{};
    Profile profile;
    std::map<Frame, std::uint32_t, LessFrame> frames;
    std::map<std::vector<std::uint32_t>, std::size_t> stacks;
    std::unordered_map<std::uint64_t, std::uint32_t> names;  // frames of user code by address
    std::map<PythonCode, std::uint32_t> functions;
    std::unordered_map<std::uint32_t, NativeRole> roles;  // by frame
  };

  static std::uint32_t frame(Growing& growing, Frame frame);
  std::uint32_t user_frame(Growing& growing, pid_t pid, std::uint64_t address);
  std::uint32_t python_frame(Growing& growing, const Sample& sample, const PythonCode& code);
  void add_python(Growing& growing, const Sample& sample, std::vector<std::uint32_t>& stack);
  [[nodiscard]] Frame kernel_frame(std::uint64_t address) const;

  Symbolizer& symbolizer_;
  const KernelSymbols* kernel_;
  unsigned rate_;
  std::map<ProfileOwner, Growing> processes_;
};

}  // namespace ceems::exporter::profile
