#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "store/postgres/connection.h"

namespace ceems::store::postgres {

// Advisory locks of a database, by number. The leader holds one as long as its session lives, a
// writer the other one for each transaction, a program that changes tables the third.
inline constexpr std::int64_t kLeaderLock = 0x4345454D'53000001;  // "CEEMS", 1
inline constexpr std::int64_t kWriterLock = 0x4345454D'53000002;
inline constexpr std::int64_t kUpgradeLock = 0x4345454D'53000003;

/// Who of the programs on a database leads, and when one of them has committed. Has a connection
/// and a thread of its own. Safe for concurrent use.
///
/// Leadership is a session lock of the server, which lets go of it when the session ends in any
/// way. Each new leader counts up the term in ceems_leader; transactions of the writer check it, so
/// whoever lost the lock without noticing cannot write once another has it.
class Coordinator {
 public:
  /// `generation` is counted up with every commit that is told of. Both must outlive the object.
  Coordinator(Connector& connector, std::atomic<std::uint64_t>& generation);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// The term when this program leads or just became leader; nothing when another one leads. Asks
  /// the server.
  Result<std::optional<std::int64_t>> lead();
  /// The term as far as is known without asking.
  [[nodiscard]] std::optional<std::int64_t> term() const;
  /// Are commits of others told of at the moment?
  [[nodiscard]] bool listening() const { return listening_.load(); }

  /// Ends the session, and with it the leadership.
  void stop();

 private:
  Result<> connect() CEEMS_REQUIRES(mutex_);
  void lost(const Error& error) CEEMS_REQUIRES(mutex_);
  Result<std::optional<std::int64_t>> try_lead() CEEMS_REQUIRES(mutex_);
  void take_notices() CEEMS_REQUIRES(mutex_);
  void listen(const std::stop_token& stop);

  Connector* connector_;
  std::atomic<std::uint64_t>* generation_;
  std::atomic<bool> listening_{false};
  mutable Mutex mutex_;
  std::unique_ptr<Connection> connection_ CEEMS_GUARDED_BY(mutex_);
  std::optional<std::int64_t> term_ CEEMS_GUARDED_BY(mutex_);
  bool reported_ CEEMS_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace ceems::store::postgres
