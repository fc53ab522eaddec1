#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "base/recent_map.h"
#include "net/cidr.h"
#include "net/http.h"
#include "redfish_proxy/address_rules.h"

namespace ceems::redfish_proxy {

/// Who sent a request.
struct Client {
  std::string address;    ///< in its canonical form; "unix" or a vsock address as it is
  bool loopback = false;  ///< the peer is on this machine
};

/// The client of a request: the peer or, if the peer is a trusted proxy, the last X-Real-IP. A
/// trusted proxy that sends something else there hides the client: then the address is empty, which
/// no node has.
Client client_of(const net::Request& request, const net::TrustedPeers& proxies);

/// Bounds how many requests of each client are under way. Thread-safe.
class ClientSlots {
 public:
  /// Takes a place for a request of this client and holds it while the object lives. Null if the
  /// client has `limit` places already.
  std::shared_ptr<void> take(const std::string& client, std::size_t limit);
  [[nodiscard]] std::size_t count(const std::string& client) const;
  [[nodiscard]] std::size_t in_use() const;

 private:
  struct State {
    mutable Mutex mutex;
    std::unordered_map<std::string, std::size_t> counts CEEMS_GUARDED_BY(mutex);
    std::size_t all CEEMS_GUARDED_BY(mutex) = 0;
  };
  class Slot;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// Bounds how many requests each client sends in a second, on average over kWindow: a client that
/// was quiet for that long may send as many at once. Thread-safe.
class ClientRates {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kWindow{10};

  enum class Verdict : std::uint8_t {
    kWithin,
    kFirstBeyond,  ///< the first since the client has been within for kWindow
    kBeyond,
  };
  /// Counts a request of this client, if it is within. `per_second` is not 0.
  Verdict count(const std::string& client, std::int64_t per_second, Clock::time_point now);

 private:
  struct Account {
    double seconds = 0;  ///< of requests, which the client may still send
    Clock::time_point seen;
    bool beyond = false;
  };
  static constexpr std::size_t kMaxClients = 16384;
  void forget_quiet(Clock::time_point now) CEEMS_REQUIRES(mutex_);

  Mutex mutex_;
  std::unordered_map<std::string, Account> accounts_ CEEMS_GUARDED_BY(mutex_);
};

/// The BMC that each client named last, for its requests without X-Redfish-Url. Bounded, the least
/// recently used are forgotten first. Thread-safe.
class NamedByClients {
 public:
  using Clock = std::chrono::steady_clock;

  void remember(const std::string& client, const BmcUrl& bmc, Clock::time_point now);
  /// Nothing if the client has named none in the last `max_age`.
  std::optional<BmcUrl> find(const std::string& client,
                             std::chrono::milliseconds max_age,
                             Clock::time_point now);

 private:
  struct Entry {
    BmcUrl bmc;
    Clock::time_point named;
  };
  static constexpr std::size_t kMaxClients = 16384;
  static constexpr std::size_t kMaxKeyBytes = 64;
  RecentMap<Entry> entries_{kMaxClients, kMaxKeyBytes};
};

}  // namespace ceems::redfish_proxy
