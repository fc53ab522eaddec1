#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace ceems::store {

/// What a connection is used for. A listing holds it for as long as a client takes to read.
enum class Use { kShort, kListing };

/// Connections for readers, which are opened when they are needed and kept. Some are reserved for
/// short questions, so that those never wait for listings. Safe for concurrent use; must outlive
/// its leases.
///
/// `Connection` is movable and has `bool recycle()`, which prepares it for the next lease. If that
/// returns false the connection is closed.
template <typename Connection>
class Pool {
 public:
  /// `name` is that of the database, for messages. `open` is called from any thread. `wait` limits
  /// acquire(). Of `max_connections`, listings may use at most `max_listings`.
  Pool(std::string name,
       int max_connections,
       int max_listings,
       std::chrono::milliseconds wait,
       std::function<Result<Connection>()> open)
      : name_(std::move(name)),
        max_connections_(max_connections),
        max_listings_(max_listings),
        wait_(wait),
        open_(std::move(open)) {}

  /// A connection for one query. Its destructor returns it to the pool. Move-only.
  class Lease {
   public:
    Lease(Pool& pool, Connection connection, Use use, bool fresh)
        : pool_(&pool), connection_(std::move(connection)), use_(use), fresh_(fresh) {}
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)),
          connection_(std::move(other.connection_)),
          use_(other.use_),
          fresh_(other.fresh_) {}
    Lease& operator=(Lease&&) = delete;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      if (pool_ != nullptr) {
        pool_->give_back(std::move(connection_), use_);
      }
    }
    Connection& connection() { return connection_; }
    /// True if the connection was opened for this lease.
    [[nodiscard]] bool fresh() const { return fresh_; }

   private:
    Pool* pool_;
    Connection connection_;
    Use use_;
    bool fresh_;
  };

  /// Waits for a free connection. kUnavailable if there is none in time, or after close(); other
  /// errors come from `open`.
  Result<Lease> acquire(Use use) {
    const int listings = use == Use::kListing ? 1 : 0;
    {
      MutexLock lock(mutex_);
      if (!freed_.wait_for(lock, wait_, [this, listings]() CEEMS_REQUIRES(mutex_) {
            return closed_ || (used_ < max_connections_ && listings_ + listings <= max_listings_);
          })) {
        return fail(ErrorCode::kUnavailable, "database {}: all connections are busy", name_);
      }
      if (closed_) {
        return fail(ErrorCode::kUnavailable, "database {}: closed", name_);
      }
      ++used_;
      listings_ += listings;
      if (!free_.empty()) {
        Connection connection = std::move(free_.back());
        free_.pop_back();
        return Lease(*this, std::move(connection), use, false);
      }
    }
    auto opened = open_();
    if (!opened) {
      const MutexLock lock(mutex_);
      --used_;
      listings_ -= listings;
      freed_.notify_all();
      return fail(std::move(opened).error());
    }
    return Lease(*this, std::move(*opened), use, true);
  }

  /// Closes the free connections.
  void clear() {
    std::vector<Connection> old;
    const MutexLock lock(mutex_);
    old.swap(free_);
  }

  /// Closes the free connections and refuses new leases.
  void close() {
    const MutexLock lock(mutex_);
    closed_ = true;
    free_.clear();
    freed_.notify_all();
  }

 private:
  void give_back(Connection connection, Use use) {
    const bool usable = connection.recycle();
    const MutexLock lock(mutex_);
    --used_;
    listings_ -= use == Use::kListing ? 1 : 0;
    if (!closed_ && usable) {
      free_.push_back(std::move(connection));
    }
    freed_.notify_all();  // the first that waits may be a listing, which may have to wait on
  }

  const std::string name_;
  const int max_connections_;
  const int max_listings_;
  const std::chrono::milliseconds wait_;
  const std::function<Result<Connection>()> open_;
  Mutex mutex_;
  Condition freed_;
  std::vector<Connection> free_ CEEMS_GUARDED_BY(mutex_);
  int used_ CEEMS_GUARDED_BY(mutex_) = 0;
  int listings_ CEEMS_GUARDED_BY(mutex_) = 0;  ///< of those in use
  bool closed_ CEEMS_GUARDED_BY(mutex_) = false;
};

}  // namespace ceems::store
