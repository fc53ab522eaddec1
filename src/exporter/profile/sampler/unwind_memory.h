#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "exporter/profile/sampler/layout.h"
#include "exporter/profile/sampler/sample.h"
#include "exporter/profile/symbol/binary_file.h"
#include "exporter/profile/symbol/process_maps.h"
#include "exporter/profile/symbol/python/interpreter.h"
#include "exporter/profile/symbol/unwind_table.h"
#include "host/paths.h"

namespace ceems::exporter::profile {

/// An unwind table as the sampling program looks it up: half the size, because few rules of a
/// binary differ. The first `rows` cells are the rows.
struct UnwindCells {
  static_assert(sizeof(stack_row) == sizeof(stack_rule));
  static constexpr std::size_t kBytes = sizeof(stack_row);  ///< of a cell in the kernel

  std::vector<stack_row> cells;  ///< rules have been copied into those behind the rows
  std::size_t rows = 0;
};

UnwindCells pack(std::span<const UnwindRow> rows);

/// The rule in this cell.
stack_rule rule_at(const UnwindCells& table, std::size_t cell);

/// The tables in the kernel in which the sampling program looks up how to unwind.
class UnwindStore {
 public:
  virtual ~UnwindStore() = default;
  /// Makes the table with this index. Errors: the kernel refuses.
  virtual Result<> put_table(std::uint32_t index, const UnwindCells& table) = 0;
  /// No process may use the table any more.
  virtual void remove_table(std::uint32_t index) = 0;
  /// Writes the mappings from this place of the kernel's array on.
  virtual Result<> put_mappings(std::uint32_t first, std::span<const stack_mapping> mappings) = 0;
  /// Adds or replaces the description of a process.
  virtual Result<> put_process(pid_t pid, const stack_process& process) = 0;
  virtual void remove_process(pid_t pid) = 0;
};

/// Describes processes to the sampling program: their executable mappings, and for each binary its
/// unwind table, which processes that run the same binary share. Bounded: what does not fit is
/// unwound by rbp. Not thread-safe.
class UnwindMemory {
 public:
  static constexpr std::size_t kTables = 1024;
  static constexpr std::size_t kMappings = 32768;
  static constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;

  enum class Python : std::uint8_t { kFind, kIgnore };
  /// `processes`: how many the kernel's table holds.
  UnwindMemory(host::Paths paths,
               UnwindStore& store,
               Python python = Python::kFind,
               std::size_t processes = 2048);

  /// Reads the mappings of a process (again) and hands them over. Errors: the process is gone, or
  /// the kernel refuses; it is then unwound by rbp.
  /// `image` is what the process was seen to run; by default anything.
  Result<> describe(pid_t pid, const stack_image& image = {});
  /// Removes the description; the process is then unwound by rbp. Releases its tables.
  void forget(pid_t pid);
  /// Forgets all processes that are not in /proc any more.
  void forget_ended();

  [[nodiscard]] bool knows(pid_t pid) const { return processes_.contains(pid); }
  /// The Python interpreter of a process that is known; null if it has none. Valid until it is
  /// described again.
  [[nodiscard]] const PythonProcess* python(pid_t pid) const;
  [[nodiscard]] std::size_t table_bytes() const { return bytes_; }

 private:
  struct Table {
    std::uint32_t index = 0;
    std::uint32_t rows = 0;
    std::size_t bytes = 0;
    std::uint64_t base = 0;
    std::vector<Segment> segments;
    std::optional<PythonBinary> python;
    std::size_t users = 0;   ///< processes
    std::uint64_t used = 0;  ///< sequence of the last use
  };
  using Key = FileIdentity;
  struct Process {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::vector<Key> tables;
    std::optional<PythonProcess> python;
  };

  const Table* table_of(pid_t pid, const Mapping& mapping, std::vector<Key>& used);
  const Table* vdso_table(std::vector<Key>& used);
  Table* add_table(const Key& key, const ElfFile& elf);
  bool make_room(std::size_t bytes);
  void release(const std::vector<Key>& tables);
  std::optional<std::uint32_t> allocate(std::uint32_t count);

  host::Paths paths_;
  UnwindStore& store_;
  const Python find_;
  const std::size_t max_processes_;
  std::map<Key, Table> tables_;
  std::unordered_map<pid_t, Process> processes_;
  std::map<std::uint32_t, std::uint32_t> ranges_;  ///< of mappings: first, count
  std::vector<std::uint32_t> free_indices_;
  std::size_t bytes_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace ceems::exporter::profile
