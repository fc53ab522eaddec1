#pragma once

#include <filesystem>
#include <string_view>

namespace ceems::testing {

/// A directory of its own for one test; removed with all it holds when the object goes away.
class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Writes a file (and the directories above it) below the directory; gives its full path.
  // Often called for its effect alone.
  // NOLINTNEXTLINE(modernize-use-nodiscard)
  std::filesystem::path write(const std::filesystem::path& relative,
                              std::string_view content) const;

 private:
  std::filesystem::path path_;
};

}  // namespace ceems::testing
