#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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

}  // namespace ceems::exporter::profile
