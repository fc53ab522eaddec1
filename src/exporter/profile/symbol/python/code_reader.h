#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "exporter/profile/symbol/python/interpreter.h"
#include "host/paths.h"

namespace ceems::exporter::profile {

/// A code object of a Python program, as the sampling program saw it. The memory of one that was
/// freed may hold another later, which `check` tells.
struct PythonCode {
  std::uint64_t address = 0;
  std::uint64_t check = 0;  ///< .co_firstlineno in the upper half, the lower half of the address of
                            ///< the name in the lower

  friend auto operator<=>(const PythonCode&, const PythonCode&) = default;
};

/// A Python function. Both texts are a job's: valid UTF-8, but otherwise anything.
struct PythonFunction {
  std::string name;  ///< with the class from Python 3.11 on: "Solver.step"
  std::string file;  ///< path of the script, as Python spells it; of a long one only the end
};

/// Fills the span with the memory at an address. False if that cannot be read.
using MemoryReader = std::function<bool(std::uint64_t address, std::span<char> bytes)>;

inline constexpr std::size_t kMaxPythonText = 512;  ///< characters that are read of a text

/// Reads the name and the file of a code object. kParse if it is none, or not the one that was
/// sampled. Reads at most 5 KiB, whatever the memory holds.
Result<PythonFunction> read_python_function(const PythonLayout& layout,
                                            const PythonCode& code,
                                            const MemoryReader& memory);
/// The same, of a process. kPermissionDenied without CAP_SYS_PTRACE or with
/// kernel.yama.ptrace_scope 3; kNotFound if the process has ended.
Result<PythonFunction> read_python_function(const PythonLayout& layout,
                                            const PythonCode& code,
                                            const host::Paths& paths,
                                            pid_t pid);

}  // namespace ceems::exporter::profile
