#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "exporter/profile/sampler/layout.h"
#include "exporter/profile/symbol/python/code_reader.h"

namespace ceems::exporter::profile {

inline bool operator==(const stack_image& a, const stack_image& b) {
  return a.started == b.started && a.execs == b.execs;
}

/// A Python interpreter in a process.
struct PythonProcess {
  std::uint64_t interpreters = 0;  ///< address of the pointer to the list of interpreters
  PythonLayout layout;
  std::string module;  ///< path of the binary that contains it
};

struct PythonSample {
  PythonCode code;
  bool entry = false;  ///< the interpreter's C function was called for it, not for a caller of it
  std::uint64_t stack = 0;  ///< of an entry, an address in the stack frame of that function; or 0
};

/// A stack that was taken. Valid during the call that hands it over.
struct Sample {
  pid_t pid = 0;
  stack_image image = {};
  std::uint64_t unit = 0;  ///< number of the cgroup of the unit; 0: in none of set_units()
  std::string_view comm;   ///< name of the process; a job chooses it
  stack_end end = STACK_END_OUTERMOST;
  bool unknown = false;                   ///< the process, or code on its stack, was not described
  std::span<const std::uint64_t> kernel;  ///< addresses, the leaf first
  std::span<const std::uint64_t> user;    ///< return addresses, the leaf first
  std::span<const PythonSample> python = {};      ///< frames of Python, the leaf first
  std::span<const std::uint64_t> stack = {};      ///< stack pointers of `user`, with `python` only
  bool python_cut = false;                        ///< there are more
  const PythonProcess* python_process = nullptr;  ///< null if the process does not run Python
};

}  // namespace ceems::exporter::profile
