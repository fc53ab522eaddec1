#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_annotations.h"
#include "store/sqlite/connection.h"

namespace ceems::store::sqlite {

/// Read-only connections, opened when first needed and kept. Safe for concurrent use; must outlive
/// its leases.
class Pool {
 public:
  Pool(std::string path, int max_connections);

  /// A connection for one query; back in the pool when it goes away. Move-only.
  class Lease {
   public:
    Lease(Pool& pool, Connection connection) : pool_(&pool), connection_(std::move(connection)) {}
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), connection_(std::move(other.connection_)) {}
    Lease& operator=(Lease&&) = delete;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease();
    Connection& connection() { return connection_; }

   private:
    Pool* pool_;
    Connection connection_;
  };

  /// Waits a few seconds for a free one, then kUnavailable. Queries on it end with kTimeout when
  /// `limit` has passed.
  Result<Lease> acquire(std::chrono::milliseconds limit);

  /// Closes the free connections and refuses new leases.
  void close();

 private:
  void give_back(Connection connection);

  const std::string path_;
  const int max_connections_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<Connection> free_ CEEMS_GUARDED_BY(mutex_);
  int used_ CEEMS_GUARDED_BY(mutex_) = 0;
  bool closed_ CEEMS_GUARDED_BY(mutex_) = false;
};

}  // namespace ceems::store::sqlite
