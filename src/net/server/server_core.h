#pragma once

// Internal to the server.

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <unordered_map>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/mutex.h"
#include "net/relay/relaying.h"
#include "net/server/fair_queue.h"
#include "net/server/request_memory.h"
#include "net/server/server.h"
#include "net/server/web_access.h"
#include "net/stream.h"

namespace ceems::net {

class Connection;

/// State that all connections of a server share. One thread runs `io`; only that thread uses the
/// sockets, the timers and `connections`. `workers` run the handlers and everything else that may
/// take long.
struct ServerCore {
  ServerCore(ServerOptions server_options, Handler request_handler);

  ServerOptions options;
  Handler handler;
  std::unique_ptr<WebAccess> web;
  std::shared_ptr<RequestMemory> memory;
  std::atomic<bool> stopping = false;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections;

  Mutex mutex;
  Condition changed;
  std::size_t open CEEMS_GUARDED_BY(mutex) = 0;  ///< number of connections

  // The order of these members matters: work queued in the pool holds coroutines, which hold
  // sockets of `io`.
  asio::io_context io{1};
  Keepers keepers;  ///< of the thread that runs `io`
  /// Acceptors wait on it while the server is full. It never expires; the waits are cancelled when
  /// a connection ends.
  Timer room{io.get_executor(), std::chrono::steady_clock::time_point::max()};
  /// Created by start_workers(), because threads that exist before privileges are dropped would
  /// keep them.
  std::unique_ptr<asio::thread_pool> workers;
  /// One thread that checks passwords one at a time; null without a web configuration.
  std::unique_ptr<asio::thread_pool> passwords;
  /// One thread for the requests that ServerOptions::urgent names; null if there is none.
  std::unique_ptr<asio::thread_pool> urgent;
  FairQueue queue;  ///< the requests that wait for `workers`
  /// The threads of ServerOptions::waits, and the requests that wait for them; null if there are
  /// none.
  std::unique_ptr<asio::thread_pool> waiters;
  FairQueue waiting_queue{ServerOptions::kMaxWaiting};

  std::string date;  ///< HTTP date of the second `date_of`; I/O thread only
  std::time_t date_of = 0;
  std::chrono::steady_clock::time_point hinted{};  ///< when plain HTTP was last logged

  /// Call this once, before the first connection is accepted.
  void start_workers();

  void join_workers();

  /// Lets a worker take one job of `queue`. Call it once for each job that is added.
  void wake_worker();
  /// The same for `waiting_queue`.
  void wake_waiting();
  /// Drops requests that wait in vain, now and for as long as any waits. I/O thread only.
  void watch_queue();
  void drop_late();
  void count(Dropped what) const;
  /// Returns freed memory to the system after a burst of requests.
  void give_memory_back();
  /// Call it after each request: see ServerOptions::give_back_after. I/O thread only.
  void give_memory_back_later();

  /// The current time as an HTTP date (RFC 9110 §5.6.7).
  const std::string& http_date();

  Timer queue_timer{io.get_executor()};
  bool watching_queue = false;
  Timer give_back_timer{io.get_executor()};
  bool giving_back = false;         ///< the timer is running
  std::size_t max_connections = 0;  ///< of the options, and what the limit of open files allows
};

/// Runs `work` on the executor and then resumes on the I/O thread. `work` must not throw.
template <typename Executor, typename Work>
Task<void> run_on(const Executor& executor, Work& work) {
  auto start = [&executor, &work](auto done) {
    asio::post(executor, [&work, done = std::move(done)]() mutable {
      work();
      const auto io = asio::get_associated_executor(done);
      asio::post(io, std::move(done));
    });
  };
  auto token = kAwait;
  co_await asio::async_initiate<asio::use_awaitable_t<IoExecutor>, void()>(start, token);
}

}  // namespace ceems::net
