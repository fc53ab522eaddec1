#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "store/postgres/connection.h"
#include "store/sql/generations.h"

namespace ceems::store::postgres {

/// The payload of the notice of a commit that leaves usage as it is.
inline constexpr std::string_view kNoUsage = "no usage";

// The numbers of the advisory locks of a database. The leader holds the first as long as its
// session lasts, a writer holds the second during each transaction, and a program that upgrades the
// tables holds the third.
inline constexpr std::int64_t kLeaderLock = 0x4345454D'53000001;  // "CEEMS", 1
inline constexpr std::int64_t kWriterLock = 0x4345454D'53000002;
inline constexpr std::int64_t kUpgradeLock = 0x4345454D'53000003;

/// Elects the leader among the programs that use a database, and notices commits of the others. Has
/// its own connection and thread. Safe for concurrent use.
///
/// The leader holds a session lock, which the server releases when the session ends in any way.
/// Each new leader increments the term in ceems_leader. Every transaction of a writer checks the
/// term, so a former leader that has not noticed its loss cannot write any more.
class Coordinator {
 public:
  /// `generations` count the commits that the server announces. Both must outlive the
  /// object.
  Coordinator(Connector& connector, Generations& generations);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// Asks the server. Returns the term if this program leads, perhaps from now on; nothing if
  /// another program leads.
  Result<std::optional<std::int64_t>> lead();
  /// The term as of the last lead(); nothing if this program did not lead then, or has lost its
  /// connection.
  [[nodiscard]] std::optional<std::int64_t> term() const;
  /// Whether the server currently announces the commits of other programs.
  [[nodiscard]] bool listening() const { return listening_.load(); }

  /// Ends the session, and with it the leadership. Idempotent.
  void stop();

 private:
  Result<> connect() CEEMS_REQUIRES(mutex_);
  void lost(const Error& error) CEEMS_REQUIRES(mutex_);
  Result<std::optional<std::int64_t>> try_lead() CEEMS_REQUIRES(mutex_);
  void take_notices() CEEMS_REQUIRES(mutex_);
  void listen(const std::stop_token& stop);

  Connector* connector_;
  Generations* generations_;
  std::atomic<bool> listening_{false};
  mutable Mutex mutex_;
  std::unique_ptr<Connection> connection_ CEEMS_GUARDED_BY(mutex_);
  std::optional<std::int64_t> term_ CEEMS_GUARDED_BY(mutex_);
  bool reported_ CEEMS_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace ceems::store::postgres
