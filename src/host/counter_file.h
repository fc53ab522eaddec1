#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::host {

/// A file of sysfs that shows one number, such as an energy counter. It stays open, so the
/// privilege to open it is needed only once. Not thread-safe.
class CounterFile {
 public:
  /// Opens a counter for reading. The caller can use it to raise a capability around open().
  using Opener = std::function<Result<UniqueFd>(const char* path)>;

  /// Without an opener, files are opened as they are.
  explicit CounterFile(std::string path, Opener opener = {});

  /// Errors: kPermissionDenied, kParse, and kNotFound or kUnavailable if the file is gone. After a
  /// reload of its kernel module the next call opens it again.
  Result<std::uint64_t> read();

 private:
  std::string path_;
  Opener opener_;
  UniqueFd fd_;  // invalid before the first read
  std::string buffer_;
};

}  // namespace ceems::host
