#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::exporter::run {

/// The directory with the data of one run. It belongs to the user, and no other user can enter it.
/// All files are named relative to its descriptor and without following links, so nothing outside
/// of it is read or written, even if other users can write to the directories above it. Errors name
/// the file.
class DataDirectory {
 public:
  /// Makes the first of `path`, `path`-2, `path`-3, … that does not exist, or takes one that is
  /// empty and the user's own, with mode 0700.
  static Result<DataDirectory> create(const std::string& path);
  /// Opens one that exists. kInvalidArgument unless it belongs to the user.
  static Result<DataDirectory> open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Names of the files, in byte order.
  [[nodiscard]] Result<std::vector<std::string>> names() const;
  [[nodiscard]] bool has(const std::string& name) const;
  /// Reads a regular file. kInvalidArgument if it is longer than `most`.
  [[nodiscard]] Result<std::string> read(const std::string& name, std::size_t most) const;
  /// Opens a regular file for reading.
  [[nodiscard]] Result<UniqueFd> open_file(const std::string& name) const;
  /// Makes a new file, which must not exist.
  [[nodiscard]] Result<UniqueFd> create_file(const std::string& name) const;
  /// Writes a file so that readers see the old or the new content, also after a crash.
  [[nodiscard]] Result<> replace(const std::string& name, std::string_view text) const;

 private:
  DataDirectory(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

}  // namespace ceems::exporter::run
