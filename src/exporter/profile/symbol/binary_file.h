#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "host/paths.h"

namespace ceems::exporter::profile {

/// Identifies one state of a file.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;

  friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};

/// A binary of a job, read piece by piece. It is never mapped: its owner could shorten it, which
/// would end this process with SIGBUS. Safe for concurrent use.
///
/// Errors of opening: any of open(2); kInvalidArgument if it is not a regular file or is larger
/// than 4 GiB.
class BinaryFile {
 public:
  /// An absolute path in this process's own root, such as that of a debug file.
  static Result<BinaryFile> open(const std::string& path);
  enum class Links : std::uint8_t { kFollow, kRefuse };
  /// A path as the root of process `pid` names it. No part of it, symbolic links included, leads
  /// out of that root. kUnavailable on kernels before 5.6, which cannot guarantee that.
  static Result<BinaryFile> open_in_process(const host::Paths& paths,
                                            pid_t pid,
                                            const std::string& path,
                                            Links links = Links::kFollow);
  /// What the mapping of [start, end) really is, even if it was deleted or replaced
  /// (/proc/PID/map_files, with CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN).
  static Result<BinaryFile> open_mapping(const host::Paths& paths,
                                         pid_t pid,
                                         std::uint64_t start,
                                         std::uint64_t end);
  static BinaryFile of_bytes(std::string bytes);

  [[nodiscard]] std::uint64_t size() const { return identity_.size; }
  [[nodiscard]] const FileIdentity& identity() const { return identity_; }
  /// The user that the file belongs to.
  [[nodiscard]] std::uint64_t owner() const { return owner_; }

  /// Exactly the bytes [offset, offset + size). kParse if the file does not have them (any more).
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::uint64_t size) const;

 private:
  static Result<BinaryFile> examined(UniqueFd fd, std::string_view path);

  UniqueFd fd_;
  std::string bytes_;  ///< without a descriptor
  FileIdentity identity_;
  std::uint64_t owner_ = 0;
};

/// Debug files from elsewhere than the process's own file system, by build id.
class DebugFileSource {
 public:
  virtual ~DebugFileSource() = default;
  /// The debug file of this build id, unchecked. Nothing if there is none, or not yet: it may be
  /// fetched, which this does not wait for.
  virtual std::optional<BinaryFile> find(const std::string& build_id) = 0;
  /// The build ids of files that have arrived since the last call.
  virtual std::vector<std::string> arrived() = 0;
};

}  // namespace ceems::exporter::profile
