#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/paths.h"

namespace ceems::exporter::profile {

/// Names of code that a runtime (Julia, Java, Node) compiled in memory. The runtime writes them to
/// /tmp/perf-PID.map, a line "START SIZE NAME" with hexadecimal numbers for each piece of code
/// (tools/perf/Documentation/jit-interface.txt in Linux).
class PerfMap {
 public:
  /// Lines of another form are left out. A later line replaces an earlier one where they overlap,
  /// because runtimes reuse memory.
  static PerfMap parse(std::string_view text);

  [[nodiscard]] std::optional<std::string_view> find(std::uint64_t address) const;
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }
  /// How many lines were left out, because they are malformed or there are too many.
  [[nodiscard]] std::size_t dropped() const { return dropped_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  friend Result<PerfMap> read_perf_map(const host::Paths& paths, pid_t pid);
  struct Range {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint32_t name = 0;  ///< offset in names_
    std::uint32_t line = 0;
  };
  void add_lines(std::string_view text);
  void keep_the_latest();

  std::vector<Range> ranges_;  ///< by start, without overlaps
  std::string names_;          ///< with a NUL behind each
  std::size_t dropped_ = 0;
};

/// Reads the map of a process, in its own mount and pid namespace. Errors: kNotFound if there is
/// none; kInvalidArgument if it is not a regular file, belongs to another user than the process
/// (anybody may write to /tmp), or is larger than 64 MiB.
Result<PerfMap> read_perf_map(const host::Paths& paths, pid_t pid);

/// The functions of the kernel and its modules. Immutable, so safe for concurrent use.
class KernelSymbols {
 public:
  /// Of a text of the form of /proc/kallsyms.
  static KernelSymbols parse(std::string_view text);

  /// The name of the function that holds an address; nothing below the first one.
  [[nodiscard]] std::optional<std::string_view> find(std::uint64_t address) const;
  [[nodiscard]] std::size_t size() const { return symbols_.size(); }

 private:
  struct Symbol {
    std::uint64_t address = 0;
    std::uint32_t name = 0;  ///< offset in names_
  };
  std::vector<Symbol> symbols_;
  std::string names_;
};

/// Reads /proc/kallsyms. kPermissionDenied if the kernel hides its addresses (kernel.kptr_restrict)
/// from a program without CAP_SYSLOG.
Result<KernelSymbols> read_kernel_symbols(const host::Paths& paths);

}  // namespace ceems::exporter::profile
