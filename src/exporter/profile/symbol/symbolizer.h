#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exporter/profile/symbol/binary_cache.h"
#include "exporter/profile/symbol/demangle.h"
#include "exporter/profile/symbol/perf_map.h"
#include "exporter/profile/symbol/process_maps.h"
#include "exporter/profile/symbol/python/code_reader.h"
#include "host/paths.h"

namespace ceems::exporter::profile {

struct SymbolizerOptions {
  DemangleMode demangle = DemangleMode::kNone;
  std::size_t processes = 32;  ///< those used in BinaryCacheLimits::rounds rounds stay in addition
  std::size_t process_bytes = 16U << 20U;  ///< of all; the least recently used ones go first
  std::size_t python_functions = 16'384;   ///< of a process; if it has more, all are read again
  BinaryCacheLimits binaries = {};
  DebugFileSource* debug_files = nullptr;  ///< must outlive the symbolizer
};

/// The name of an address.
struct SymbolName {
  /// The function; else the path of the module, or "[unknown]", or "end_of_stack".
  std::string function;
  std::string module;     ///< path of the binary, or "[vdso]"; may be empty
  bool resolved = false;  ///< `function` is a function
  bool jit = false;       ///< it was found in a perf map
};

/// Names the addresses of user code. A round is the time between two collections of samples. Within
/// a round, the mappings and the perf map of a process are read again once at most, when an address
/// is not in them. Not safe for concurrent use.
class Symbolizer {
 public:
  Symbolizer(host::Paths paths, const SymbolizerOptions& options);

  /// Never fails: a process may end at any time, and then its addresses are unknown. A return
  /// address belongs to the call before it, so callers pass the address minus one, except for the
  /// leaf.
  SymbolName name(pid_t pid, std::uint64_t address);

  /// The function of a code object of a Python program; null if it cannot be read (any more). Valid
  /// until the next call.
  const PythonFunction* python_function(pid_t pid,
                                        const PythonLayout& layout,
                                        const PythonCode& code);

  /// Which program the process runs: two numbers that change when it runs another one, or when its
  /// number goes to another process. Everything about the process that had the number before is
  /// then forgotten.
  using Program = std::pair<std::uint64_t, std::uint64_t>;
  void enter(pid_t pid, const Program& program);
  /// Forgets a process that has ended.
  void forget(pid_t pid);
  void next_round();

  [[nodiscard]] const BinaryCache& binaries() const { return binaries_; }

 private:
  struct Process {
    Program program = {};
    ProcessMaps maps;
    /// For each mapping: the binary, once it was requested. Null if it cannot be read.
    std::vector<std::optional<std::shared_ptr<const Binary>>> binaries;
    std::optional<PerfMap> perf_map;
    std::map<PythonCode, PythonFunction> python;
    std::size_t python_bytes = 0;
    std::uint64_t maps_read = 0;      ///< the round + 1, 0 for never
    std::uint64_t perf_map_read = 0;  ///< likewise
    std::uint64_t used = 0;           ///< the round
    std::uint64_t sequence = 0;       ///< of the last use, among all
    std::size_t bytes = 0;            ///< of all of this, about
  };

  Process& process(pid_t pid);
  const Mapping* mapping_of(pid_t pid, Process& process, std::uint64_t address);
  void read_process(pid_t pid, Process& process);
  const Binary* binary_of(pid_t pid, Process& process, const Mapping& mapping);
  std::optional<std::string> jit_name(pid_t pid, Process& process, std::uint64_t address);
  void account(Process& process);
  void evict();

  host::Paths paths_;
  SymbolizerOptions options_;
  BinaryCache binaries_;
  std::unordered_map<pid_t, Process> processes_;
  std::uint64_t round_ = 0;
  std::uint64_t uses_ = 0;
  std::size_t bytes_ = 0;  ///< of all processes
};

}  // namespace ceems::exporter::profile
