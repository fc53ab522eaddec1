#pragma once

#include <cstddef>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::host {

/// Largest file read_file() takes; a longer one is cut there (hostile or broken pseudo files).
inline constexpr std::size_t kMaxFileSize = std::size_t{16} << 20U;

/// Reads a file from its start into `buffer` (its memory is reused). `path` is a NUL-terminated
/// string. Errors: kNotFound, kPermissionDenied, kUnavailable (EIO, ENODEV of a vanished cgroup),
/// kInternal; the message names the path.
Result<> read_file(const char* path, std::string& buffer, std::size_t limit = kMaxFileSize);
Result<std::string> read_file(const std::string& path, std::size_t limit = kMaxFileSize);

/// The same for `name` below an open directory (openat): no path building on hot paths.
Result<> read_file_at(int directory_fd,
                      const char* name,
                      std::string& buffer,
                      std::size_t limit = kMaxFileSize);

/// Reads an open pseudo file again from offset 0 (pread); ENODEV when its cgroup is gone.
Result<> reread(const UniqueFd& fd, std::string& buffer, std::size_t limit = kMaxFileSize);

/// Opens a file for reread(). Errors as read_file().
Result<UniqueFd> open_file(const char* path);

}  // namespace ceems::host
