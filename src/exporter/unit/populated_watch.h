#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::exporter {

/// Waits for changes of cgroup.events files (Documentation/admin-guide/cgroup-v2.rst: a file
/// modified event is generated when `populated` changes), so that the last numbers of a unit can be
/// read between its last process and the removal of its cgroup. One thread that sleeps in epoll.
/// add() is safe for concurrent use.
class PopulatedWatch {
 public:
  /// `changed(token)` is called on the thread of the watch, never after the destructor returned.
  static Result<std::unique_ptr<PopulatedWatch>> create(
      std::function<void(std::uint64_t token)> changed);
  PopulatedWatch(const PopulatedWatch&) = delete;
  PopulatedWatch& operator=(const PopulatedWatch&) = delete;
  ~PopulatedWatch();

  /// Watches an open cgroup.events that has been read once; closing it ends that. False where the
  /// kernel refuses.
  bool add(int fd, std::uint64_t token);

 private:
  PopulatedWatch(UniqueFd epoll, UniqueFd wake, std::function<void(std::uint64_t)> changed);
  void run();

  UniqueFd epoll_;
  UniqueFd wake_;
  std::function<void(std::uint64_t)> changed_;
  std::thread thread_;
};

}  // namespace ceems::exporter
