#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::exporter {

/// Reports subdirectories that are created in and removed from directories, by inotify(7). In a
/// cgroup file system this works for directories made through the same mount or another mount of
/// the same cgroup namespace. Not thread-safe.
class DirectoryWatch {
 public:
  struct Event {
    int directory = -1;          ///< as add() returned it
    std::string_view name = {};  ///< of the subdirectory
    bool created = false;        ///< otherwise removed
    bool lost = false;           ///< the kernel's queue was full: any directory may have changed
  };

  /// `root` is the directory that the paths of add() are relative to.
  static Result<DirectoryWatch> create(std::string root);

  /// Readable while events are queued.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Watches the directory at `path`, which is empty or starts with '/'. The kernel limits the
  /// number of directories (fs.inotify.max_user_watches).
  Result<int> add(const std::string& path);
  /// Must be called for removed directories, too, because kernfs does not report their end.
  void remove(int directory);
  /// Takes at most one buffer of the queued events. Returns how many there were; 0 if none.
  std::size_t read(const std::function<void(const Event&)>& take);

 private:
  DirectoryWatch(UniqueFd fd, std::string root);

  UniqueFd fd_;
  std::string root_;
  std::string path_;  // reused
  std::vector<char> buffer_;
};

}  // namespace ceems::exporter
