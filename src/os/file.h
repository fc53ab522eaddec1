#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::os {

/// Reads a whole file. Follows no symbolic link in the last part of `path`, and does not wait for
/// the other end of a pipe. Errors: any of open() and read(), kInvalidArgument if it is not a
/// regular file or is larger than `max_bytes`. Messages name the path.
Result<std::string> read_regular_file(const std::string& path, std::size_t max_bytes);

/// Writes all of `text`, however many calls that takes. `what` begins the message of an error.
/// After an error an unknown part is written. Raises SIGPIPE as write() does.
Result<> write_all(int descriptor, std::string_view text, std::string_view what = "write");

/// Replaces a file, or creates it, so that readers see the old or the new content and a crash
/// leaves one of them. Writes PATH.PID first, in the same directory, and takes as long as the disk
/// needs. Errors name the path.
Result<> replace_file(const std::string& path, std::string_view content, mode_t mode = 0600);

}  // namespace ceems::os
