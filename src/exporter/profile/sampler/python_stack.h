#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ceems::exporter::profile {

/// What a native frame is to a Python program.
enum class NativeRole : std::uint8_t {
  kCode,  ///< anything else: extensions, C libraries, functions of the interpreter with a name
  kEval,  ///< runs Python frames: _PyEval_EvalFrameDefault
  kCall,  ///< passes calls from one to the other, or is a part of the interpreter without name
  kInterpreter,  ///< another function of the interpreter
  kStart,        ///< starts a program or a thread
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

/// One stack of both, the leaf first: Python's frames take the place of the kEval frames that ran
/// them, and C functions that Python called stay inside of them. Left out: what passes calls on,
/// and everything of the interpreter outside of the outermost Python frame, which is the same for
/// every program. Without Python frames the native ones are returned.
/// @param complete  both stacks reach the outermost frame; otherwise they are matched from the leaf
std::vector<std::uint32_t> merge_python(std::span<const NativePart> native,
                                        std::span<const PythonPart> python,
                                        bool complete);

}  // namespace ceems::exporter::profile
