#pragma once

#include <filesystem>
#include <string_view>

namespace ceems::testing {

/// A temporary directory for one test; the destructor removes it with everything in it. Throws
/// std::system_error where it cannot be made or written, for example on a full disk.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file below the directory, makes the directories above it, and returns its full path.
  // Often called only for its effect.
  // NOLINTNEXTLINE(modernize-use-nodiscard)
  std::filesystem::path write(const std::filesystem::path& relative,
                              std::string_view content) const;

 private:
  std::filesystem::path path_;
};

}  // namespace ceems::testing
