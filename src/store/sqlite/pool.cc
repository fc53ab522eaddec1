#include "store/sqlite/pool.h"

#include <utility>

namespace ceems::store::sqlite {

Pool::Pool(std::string path, int max_connections)
    : path_(std::move(path)), max_connections_(max_connections) {}

Pool::Lease::~Lease() {
  if (pool_ != nullptr) {
    pool_->give_back(std::move(connection_));
  }
}

Result<Pool::Lease> Pool::acquire(std::chrono::milliseconds limit) {
  constexpr auto kWait = std::chrono::seconds(5);
  std::optional<Connection> connection;
  {
    std::unique_lock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + kWait;
    while (!closed_ && free_.empty() && used_ >= max_connections_) {
      if (freed_.wait_until(lock, deadline) == std::cv_status::timeout && free_.empty() &&
          used_ >= max_connections_) {
        return fail(ErrorCode::kUnavailable, "data base {}: all connections are busy", path_);
      }
    }
    if (closed_) {
      return fail(ErrorCode::kUnavailable, "data base {}: closed", path_);
    }
    ++used_;
    if (!free_.empty()) {
      connection = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!connection) {
    auto opened = Connection::open(path_, OpenMode::kReadOnly);
    if (!opened) {
      const std::scoped_lock lock(mutex_);
      --used_;
      freed_.notify_one();
      return fail(std::move(opened).error());
    }
    connection = std::move(*opened);
  }
  connection->set_deadline(std::chrono::steady_clock::now() + limit);
  return Lease(*this, std::move(*connection));
}

void Pool::give_back(Connection connection) {
  connection.clear_deadline();
  const std::scoped_lock lock(mutex_);
  --used_;
  if (!closed_) {
    free_.push_back(std::move(connection));
  }
  freed_.notify_one();
}

void Pool::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  free_.clear();
  freed_.notify_all();
}

}  // namespace ceems::store::sqlite
