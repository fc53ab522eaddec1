#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "exporter/ebpf/tables.h"

namespace ceems::exporter::ebpf {

/// The runs of calls that the CPUs count (struct ebpf_file_run), and what they add to the rows of
/// `files`. Not thread-safe.
class FileRuns {
 public:
  /// The runs of all CPUs as they were read. A run that was replaced meanwhile is left out; its
  /// counts are in the table at the next reading. `operation`: EBPF_READ or EBPF_WRITE.
  void note(std::uint32_t operation, std::span<const ebpf_file_run> runs);
  /// Adds the runs to the rows, whose keys are unique.
  void add_to(Rows<ebpf_file_key, ebpf_file_value>& files) const;
  /// Whether a CPU is in a run of this key, or may be.
  [[nodiscard]] bool has(const ebpf_file_key& key) const;

 private:
  using Key = std::array<std::uint64_t, 3>;
  struct Runs {
    std::map<Key, ebpf_file_value> sums;
    bool unsure = false;  ///< some could not be read
  };
  static Key key_of(const ebpf_file_key& key) { return {key.cgroup, key.mount, key.root}; }

  std::array<Runs, 2> runs_;
};

}  // namespace ceems::exporter::ebpf
