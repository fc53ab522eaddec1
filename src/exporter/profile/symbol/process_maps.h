#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/paths.h"

namespace ceems::exporter::profile {

/// Executable memory of a process.
struct Mapping {
  enum class Kind : std::uint8_t {
    kFile,
    kAnonymous,  ///< no file behind it: code that the process wrote itself
    kVdso,
    kSpecial,  ///< other names of the kernel, such as [vsyscall] and [uprobes]
  };

  std::uint64_t start = 0;
  std::uint64_t end = 0;     ///< the first address behind it
  std::uint64_t offset = 0;  ///< of `start` in the file
  std::uint32_t dev_major = 0;
  std::uint32_t dev_minor = 0;
  std::uint64_t inode = 0;
  Kind kind = Kind::kAnonymous;
  bool deleted = false;  ///< the file has no name any more, or was made by memfd_create
  std::string path;      ///< as the process's root names it, without " (deleted)"

  friend bool operator==(const Mapping&, const Mapping&) = default;
};

struct ProcessMaps {
  std::vector<Mapping> mappings;  ///< by address
  bool truncated = false;         ///< there are more than kMaxMappings, or longer paths in all

  /// The mapping that holds an address; null if there is none.
  [[nodiscard]] const Mapping* find(std::uint64_t address) const;
};

inline constexpr std::size_t kMaxMappings = 10'000;
inline constexpr std::size_t kMaxPathBytes = 1U << 20U;  ///< of all mappings of a process

/// The executable mappings in a text of the form of /proc/PID/maps (proc_pid_maps(5)). Lines of
/// another form, and mappings that overlap those before them, are left out.
ProcessMaps parse_maps(std::string_view text);

/// The mappings of a process. Errors: any of host::read_file().
Result<ProcessMaps> read_maps(const host::Paths& paths, pid_t pid);

}  // namespace ceems::exporter::profile
