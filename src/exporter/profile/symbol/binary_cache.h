#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "exporter/profile/symbol/elf_file.h"
#include "exporter/profile/symbol/names/symbol_table.h"
#include "exporter/profile/symbol/process_maps.h"
#include "host/paths.h"

namespace ceems::exporter::profile {

/// Opens the file of a mapping: by /proc/PID/map_files where that is permitted, which is right even
/// for deleted files, and by its path in the process's root otherwise. kNotFound for deleted files
/// that way, because another file may have their name.
Result<BinaryFile> open_binary(const host::Paths& paths, pid_t pid, const Mapping& mapping);

/// What symbolization keeps of a binary. Immutable.
struct Binary {
  std::vector<Segment> segments;
  std::uint64_t base = 0;
  std::string build_id;
  SymbolTable symbols;

  /// The offset from the lowest PT_LOAD address of an address in a mapping of this binary; nothing
  /// where the mapping is not of its code.
  [[nodiscard]] std::optional<std::uint32_t> offset_of(const Mapping& mapping,
                                                       std::uint64_t address) const;
};

struct BinaryCacheLimits {
  std::size_t by_build_id = 64;
  std::size_t by_file = 8;
  unsigned rounds = 3;                    ///< entries used in so many rounds stay in addition
  std::size_t memory_bytes = 40U << 20U;  ///< of all; the least recently used ones go first
  std::size_t loads_per_round = 200;      ///< the rest of a hostile number waits for other rounds
};

/// Symbols of binaries, read once for all processes that run them. Not safe for concurrent use.
///
/// A job chooses what its binaries contain, build ids included. What one user's files say must not
/// name the functions of another's: a build id counts together with the owner and the size of the
/// file, and a debug file only if it belongs to root or to the owner of the binary.
class BinaryCache {
 public:
  /// `source`, which may be null, must outlive this object.
  BinaryCache(host::Paths paths,
              const BinaryCacheLimits& limits,
              DebugFileSource* source = nullptr);

  /// The binary of a mapping. Errors: any of opening and reading; kUnavailable if too many were
  /// loaded in this round.
  Result<std::shared_ptr<const Binary>> find(pid_t pid, const Mapping& mapping);
  /// The kernel's code in every process; null if it cannot be read.
  const Binary* vdso();

  /// True if debug files have arrived: binaries that were found before may have more names now.
  bool next_round();
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Entry {
    std::vector<FileIdentity> files;  ///< the same binary in several places
    std::string build_id;             ///< with owner and size; empty without one
    std::shared_ptr<const Binary> binary;
    std::size_t bytes = 0;
    std::uint64_t used = 0;  ///< the round
  };
  using Entries = std::list<Entry>;

  std::shared_ptr<const Binary> use(Entries::iterator entry);
  void evict();

  host::Paths paths_;
  BinaryCacheLimits limits_;
  DebugFileSource* source_;
  Entries entries_;  ///< the most recently used first
  std::uint64_t round_ = 0;
  std::size_t loads_ = 0;  ///< in this round
  std::size_t memory_bytes_ = 0;
  std::optional<Binary> vdso_;
  bool vdso_read_ = false;
};

}  // namespace ceems::exporter::profile
