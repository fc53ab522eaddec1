#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
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

/// Waits for changes of cgroup.events files, so that the final statistics of a unit can be read
/// between the end of its last process and the removal of its cgroup
/// (Documentation/admin-guide/cgroup-v2.rst: a file modified event is generated when `populated`
/// changes). One thread that sleeps in epoll. add() is safe for concurrent use.
class PopulatedWatch {
 public:
  /// `changed(token)` is called on the watch's thread, and never after the destructor has returned.
  static Result<std::unique_ptr<PopulatedWatch>> create(
      std::function<void(std::uint64_t token)> changed);
  PopulatedWatch(const PopulatedWatch&) = delete;
  PopulatedWatch& operator=(const PopulatedWatch&) = delete;
  ~PopulatedWatch();

  /// Watches an open cgroup.events file that has been read once, until the file is closed. False if
  /// the kernel refuses.
  bool add(int fd, std::uint64_t token);
  /// Calls changed(token) as long as `fd` is readable.
  bool add_readable(int fd, std::uint64_t token);

 private:
  PopulatedWatch(UniqueFd epoll, UniqueFd wake, std::function<void(std::uint64_t)> changed);
  void run();

  UniqueFd epoll_;
  UniqueFd wake_;
  std::function<void(std::uint64_t)> changed_;
  std::thread thread_;
};

}  // namespace ceems::exporter
