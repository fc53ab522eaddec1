#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::exporter {

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
