#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::host {

/// The default limit of read_file(), in bytes. Longer (hostile or broken) files are truncated.
inline constexpr std::size_t kMaxFileSize = std::size_t{16} << 20U;
/// The limit for a file of sysfs that has one value.
inline constexpr std::size_t kMaxValueSize = 128;

/// Reads a file from its start into `buffer`, whose memory is reused. `path` is a NUL-terminated
/// string. Errors: kNotFound, kPermissionDenied, kUnavailable (EIO, or ENODEV if the cgroup is
/// gone), kInternal. Their messages name the path.
Result<> read_file(const char* path, std::string& buffer, std::size_t limit = kMaxFileSize);
Result<std::string> read_file(const std::string& path, std::size_t limit = kMaxFileSize);

/// The same for `name` in an open directory (openat), so that hot paths need not build path names.
Result<> read_file_at(int directory_fd,
                      const char* name,
                      std::string& buffer,
                      std::size_t limit = kMaxFileSize);

/// Reads an open pseudo file again from offset 0 (pread). Fails with ENODEV if its cgroup is gone.
Result<> reread(const UniqueFd& fd, std::string& buffer, std::size_t limit = kMaxFileSize);

/// Opens a file for reread(). Errors: any of read_file().
Result<UniqueFd> open_file(const char* path);

/// The names in a directory without "." and "..", in byte order. Errors: kNotFound,
/// kPermissionDenied, kInternal. Their messages name the path.
Result<std::vector<std::string>> list_directory(const std::string& path);

/// Whether the path is a directory or a link to one.
bool is_directory(const std::string& path);

/// Whether the path is /sys or on another mounted sysfs: it then shows the hardware of this machine
/// and is not a copy.
bool is_own_sysfs(const std::string& path);

}  // namespace ceems::host
