#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace ceems::exporter {

/// Limits how many files are kept open between samples. Reading a cgroup file through an open
/// descriptor costs a fifth of open, read and close (about 1 us against 5 us), but each descriptor
/// holds a buffer page in the kernel and counts against RLIMIT_NOFILE. Not thread-safe.
class FdBudget {
 public:
  explicit FdBudget(std::size_t limit) : left_(limit) {}
  /// Three quarters of the soft RLIMIT_NOFILE, at most 65536.
  static std::size_t default_limit();

  bool take() {
    if (left_ == 0) {
      return false;
    }
    --left_;
    return true;
  }
  void give_back() { ++left_; }
  [[nodiscard]] std::size_t left() const { return left_; }

 private:
  std::size_t left_;
};

/// Result of a read: text, valid until the buffer is used again, or an errno value.
struct FileText {
  std::string_view text;
  int error = 0;

  [[nodiscard]] bool ok() const { return error == 0; }
  /// The file does not exist: there is no such controller, or its statistics are off (EOPNOTSUPP).
  [[nodiscard]] bool absent() const;
  /// The file was open, and its cgroup has been removed since.
  [[nodiscard]] bool vanished() const;
};

/// Buffer that files are read into. Grows to the size of the largest file seen, at most kLimit.
class TextBuffer {
 public:
  static constexpr std::size_t kLimit = std::size_t{4} << 20U;

  TextBuffer() : bytes_(std::size_t{16} << 10U) {}
  /// Reads `fd` from its start to its end, or up to kLimit.
  FileText read(int fd);

 private:
  std::vector<char> bytes_;
};

/// A small kernel file that is read again and again. It is opened by the first read and kept open
/// while the budget allows, otherwise opened for each read. The budget must outlive it. Not
/// thread-safe.
class KeptFile {
 public:
  KeptFile() = default;
  KeptFile(KeptFile&& other) noexcept;
  KeptFile& operator=(KeptFile&& other) noexcept;
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;
  ~KeptFile() { close(); }

  /// True while the file is not open, so that read() needs its path.
  [[nodiscard]] bool needs_path() const { return !fd_.valid(); }
  /// `path` is relative to `directory_fd` and used only if needs_path().
  FileText read(int directory_fd, const char* path, TextBuffer& buffer, FdBudget& budget);
  void close();
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  FdBudget* budget_ = nullptr;  // set while fd_ is open
};

}  // namespace ceems::exporter
