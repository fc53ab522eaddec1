#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/robust.h"

namespace ceems::fleet {

/// What a unit asked of a file system, summed over its nodes, minute by minute over the last hour.
struct FileSystemUse {
  std::string uuid;
  WindowValues bytes = {};     ///< read and written a second
  WindowValues requests = {};  ///< reads and writes a second
  WindowValues metadata = {};  ///< requests of metadata a second
};

/// A file system of a cluster. Nothing in the windows of a unit's use means none.
struct FileSystem {
  std::string name;
  WindowValues requests =
      {};  ///< of all units; what is smaller than the sum of `units` is that sum
  WindowValues metadata = {};  ///< likewise
  std::vector<FileSystemUse> units = {};
};

/// A unit that asks so much of a file system that others wait.
struct IoStorm {
  std::string file_system, uuid;
  std::string_view kind;  ///< of its requests: "requests" or "metadata"
  double share = 0;       ///< of the requests in this time
  double rate = 0;        ///< requests a second
  std::size_t first = 0;  ///< window in which it began
  std::size_t windows = 0;
  std::vector<std::string> victims;  ///< uuids
  bool shared = false;               ///< the victims use the file system; false: that is not known
};

/// Which units wait.
struct Waits {
  /// By uuid, the share of the time in which the unit waited for I/O. Nothing in a window means
  /// that it was too little to be read.
  std::map<std::string, WindowValues> stalled = {};
  /// The units that use a file system, by its name. One that is absent: it is not known which do.
  std::map<std::string, std::set<std::string>, std::less<>> users = {};
};

inline constexpr std::size_t kLeastStorm = 10;   ///< windows
inline constexpr std::size_t kLeastVictims = 5;  ///< units

/// The names of the file systems of which one unit has most of the requests for ten windows in a
/// row, so that there may be a storm.
std::vector<std::string> loaded_file_systems(std::span<const FileSystem> systems);

/// The storms of a cluster, those with the most victims first. A unit has more than half of the
/// requests, or of the requests of metadata, of a file system for ten windows in a row, while at
/// least five other units wait for I/O more than twice as long as their own median of the other
/// windows, and 2 % of the time or more. Only units that use the file system count, if that is
/// known.
std::vector<IoStorm> find_io_storms(std::span<const FileSystem> systems, const Waits& waits);

}  // namespace ceems::fleet
