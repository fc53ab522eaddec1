#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "base/thread_annotations.h"
#include "net/relay/upstream.h"

namespace ceems::lb {

/// What trying a connection told of a server.
enum class Verdict : std::uint8_t {
  kTakesConnections,
  kGone,
  kNotKnown,  ///< descriptors or memory are short here, which says nothing of the server
};

/// Tries a connection to each address of each server at the same time, those known before and those
/// that a new lookup of its name finds. Calls `decided` once for each server, by its place in
/// `servers`, as soon as it is clear whether it took one before `patience` was over. Ends early
/// when stopped; nothing is decided then.
void probe(const std::vector<std::shared_ptr<net::Upstream>>& servers,
           std::chrono::milliseconds patience,
           const std::stop_token& stop,
           const std::function<void(std::size_t place, Verdict verdict)>& decided);

/// A server and a question to it that any answer will do for; false when none came in time.
struct Watched {
  std::shared_ptr<net::Upstream> upstream;
  std::function<bool()> answers;
};

struct WatchTimes {
  std::chrono::milliseconds interval{20'000};  ///< between connections that are tried to all
  std::chrono::milliseconds patience{10'000};  ///< with each
  std::chrono::milliseconds glance{2500};      ///< between looks at those that are gone or silent
  std::chrono::milliseconds silence{5000};     ///< after which a server is asked
};

/// Has whoever watches look at all servers at once, before the interval is over. Thread-safe.
class LookNow {
 public:
  void ask();
  /// Waits until somebody asks, the time is over or it is stopped. True when somebody has asked.
  bool wait(const std::stop_token& stop, std::chrono::milliseconds time);

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool asked_ CEEMS_GUARDED_BY(mutex_) = false;
};

/// Probes the servers that `servers` names, at once, every interval and when `now` is asked, those
/// that are gone at every glance; those that requests wait for in vain are asked a question. Marks
/// them alive or not and logs every change. One that takes its time delays none of the others:
/// connections and questions are waited for on threads of their own. Returns soon after it is
/// stopped: names and connections are not waited for then, questions are.
void keep_watch(const std::stop_token& stop,
                const std::function<std::vector<Watched>()>& servers,
                const WatchTimes& times = {},
                LookNow* now = nullptr);

}  // namespace ceems::lb
