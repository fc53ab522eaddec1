#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "exporter/profile/symbol/elf_file.h"

namespace ceems::exporter::profile {

/// How to recognise the frame for which CPython's C function for running frames
/// (_PyEval_EvalFrameDefault) was called, as opposed to a caller of that frame.
enum class PythonEntry : std::uint8_t {
  kEvery,  ///< each frame has a call of its own: until 3.10
  kFlag,   ///< the frame has a flag: 3.11
  kOwner,  ///< a frame that belongs to the interpreter lies below: from 3.12 on
};

/// Where CPython keeps what the profiler reads: offsets in bytes from the start of each structure,
/// 64-bit.
struct PythonLayout {
  std::uint32_t interpreters = 0;         ///< _PyRuntimeState.interpreters.head
  std::uint32_t interpreter_next = 0;     ///< PyInterpreterState.next
  std::uint32_t interpreter_threads = 0;  ///< .threads.head or .tstate_head
  std::uint32_t thread_next = 0;          ///< PyThreadState.next
  std::uint32_t thread_id = 0;
  std::uint32_t thread_frame = 0;  ///< .frame, .cframe or .current_frame
  bool holder = false;             ///< thread_frame is .cframe
  std::uint32_t holder_frame = 0;  ///< _PyCFrame.current_frame
  std::uint32_t frame_code = 0;    ///< of PyFrameObject or _PyInterpreterFrame
  std::uint32_t frame_previous = 0;
  std::uint32_t frame_entry = 0;  ///< .is_entry or .owner
  PythonEntry entry = PythonEntry::kEvery;
  std::uint32_t code_file = 0;  ///< PyCodeObject.co_filename
  std::uint32_t code_name = 0;
  std::uint32_t code_qualified_name = 0;  ///< .co_qualname, or .co_name before 3.11
  std::uint32_t code_first_line = 0;
  std::uint32_t text_length = 0;      ///< PyASCIIObject.length
  std::uint32_t text_state = 0;       ///< .state
  std::uint32_t text_state_kind = 0;  ///< the lowest bit of .state.kind
  std::uint32_t text_ascii = 0;       ///< size of PyASCIIObject, behind which the characters are
  std::uint32_t text_compact = 0;     ///< size of PyCompactUnicodeObject, likewise

  friend bool operator==(const PythonLayout&, const PythonLayout&) = default;
};

inline constexpr unsigned kFirstPythonMinor = 6;
inline constexpr unsigned kLastPythonMinor = 15;
/// From this version on, interpreters describe themselves.
inline constexpr unsigned kFirstDescribedMinor = 13;
/// Bytes of the description.
inline constexpr std::size_t kPythonDescriptionBytes = 1024;

/// The layout of Python 3.`minor`, 6 to 12. Nothing for others.
std::optional<PythonLayout> known_python_layout(unsigned minor);

/// The layout of 3.13 to 3.15, from the interpreter's own description: _Py_DebugOffsets, with which
/// _PyRuntime begins (CPython's Include/internal/pycore_debug_offsets.h; in 3.13 pycore_runtime.h).
/// kParse if it is none, is of another version, or has an offset beyond any possible structure: a
/// job chooses the bytes.
Result<PythonLayout> parse_python_description(std::string_view bytes);

/// The Python interpreter that a binary contains: a libpython, or a program that is linked with it
/// statically.
struct PythonBinary {
  std::uint64_t interpreters = 0;  ///< where the pointer to the list of interpreters is, from the
                                   ///< binary's lowest PT_LOAD address
  PythonLayout layout;
};

/// Looks for CPython 3.6 to 3.15 in a binary by its dynamic symbols, because programs that contain
/// an interpreter have any name. Nothing where there is none, or one of another version.
std::optional<PythonBinary> find_python(const ElfFile& elf);

/// The address that a function's machine code for x86-64 reads and returns, if that is all it does:
/// of `return variable;`. `address` is that of the function.
std::optional<std::uint64_t> returned_variable(std::string_view code, std::uint64_t address);

}  // namespace ceems::exporter::profile
