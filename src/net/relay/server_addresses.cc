#include "net/relay/server_addresses.h"

#include <netdb.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/mutex.h"
#include "net/unix_url.h"

namespace ceems::net {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds kAfterFailure{5000};

Result<SocketAddresses> ask_resolver(const std::string& host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (status != 0) {
    return fail(ErrorCode::kUnavailable, "{}", ::gai_strerror(status));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  SocketAddresses addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    addresses.emplace_back(entry->ai_addr, entry->ai_addrlen);
  }
  return addresses;
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t size) : size_(size) {
  CEEMS_CHECK(size <= sizeof place_);
  std::memcpy(&place_, address, size);
}

SocketAddress SocketAddress::of_unix(std::string_view path) {
  CEEMS_CHECK(path.size() <= kMaxUnixPathBytes);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, kMaxUnixPathBytes);
  return {reinterpret_cast<const sockaddr*>(&address), sizeof address};
}

std::string SocketAddress::numeric() const {
  std::array<char, NI_MAXHOST> host{};
  const bool known = family() != AF_UNIX && ::getnameinfo(data(), size_, host.data(), host.size(),
                                                          nullptr, 0, NI_NUMERICHOST) == 0;
  return known ? host.data() : "";
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  return size_ == other.size_ && std::memcmp(&place_, &other.place_, size_) == 0;
}

Result<SocketAddresses> look_up(const std::string& host, const std::string& port) {
  return ask_resolver(host, port, 0);
}

struct ServerAddresses::State {
  std::string host;
  std::string port;
  Lookup lookup;
  bool fixed = false;  ///< nothing to look up

  Mutex mutex;
  std::shared_ptr<const SocketAddresses> list CEEMS_GUARDED_BY(mutex) =
      std::make_shared<const SocketAddresses>();
  std::string error CEEMS_GUARDED_BY(mutex);
  bool told_error CEEMS_GUARDED_BY(mutex) = false;  ///< the error was logged
  bool looking CEEMS_GUARDED_BY(mutex) = false;
  std::optional<steady_clock::time_point> looked CEEMS_GUARDED_BY(mutex);
  std::vector<const std::function<void()>*> waiting CEEMS_GUARDED_BY(mutex);

  [[nodiscard]] bool is_due(milliseconds max_age) const CEEMS_REQUIRES(mutex) {
    const milliseconds age = error.empty() ? max_age : std::min(max_age, kAfterFailure);
    return !fixed && !looking && (!looked || steady_clock::now() - *looked >= age);
  }
  [[nodiscard]] Known known() const CEEMS_REQUIRES(mutex) { return {list, looking, error}; }

  void end(Result<SocketAddresses> found) CEEMS_REQUIRES(mutex) {
    looking = false;
    looked = steady_clock::now();
    if (found && !found->empty()) {
      list = std::make_shared<const SocketAddresses>(std::move(*found));
      error.clear();
      told_error = false;
    } else {
      error = found ? "the name has no address" : std::move(found).error().message;
    }
    for (const auto* const told : waiting) {
      (*told)();
    }
  }
};

namespace {

void begin_lookup(const std::shared_ptr<ServerAddresses::State>& state)
    CEEMS_REQUIRES(state->mutex) {
  state->looking = true;
  try {
    std::thread([state] {
      auto found = state->lookup(state->host, state->port);
      const MutexLock lock(state->mutex);
      state->end(std::move(found));
    }).detach();
  } catch (const std::system_error& error) {
    state->end(fail(ErrorCode::kUnavailable, "no thread for a lookup: {}", error.what()));
  }
}

}  // namespace

ServerAddresses::ServerAddresses(std::string host, std::string port, Lookup lookup)
    : state_(std::make_shared<State>()) {
  if (auto numeric = ask_resolver(host, port, AI_NUMERICHOST)) {
    state_->list = std::make_shared<const SocketAddresses>(std::move(*numeric));
    state_->fixed = true;
  }
  state_->host = std::move(host);
  state_->port = std::move(port);
  state_->lookup = std::move(lookup);
}

ServerAddresses::ServerAddresses(std::string_view unix_path) : state_(std::make_shared<State>()) {
  state_->list = std::make_shared<const SocketAddresses>(1, SocketAddress::of_unix(unix_path));
  state_->fixed = true;
}

ServerAddresses::~ServerAddresses() = default;

ServerAddresses::Known ServerAddresses::get(milliseconds max_age) {
  const MutexLock lock(state_->mutex);
  if (!state_->error.empty() && !state_->list->empty() &&
      !std::exchange(state_->told_error, true)) {
    log::warn("a name cannot be looked up, the addresses known before stay in use",
              {{"host", state_->host}, {"err", state_->error}});
  }
  if (state_->is_due(max_age)) {
    begin_lookup(state_);
  }
  return state_->known();
}

ServerAddresses::Known ServerAddresses::known() const {
  const MutexLock lock(state_->mutex);
  return state_->known();
}

bool ServerAddresses::is_looked_up() const {
  return !state_->fixed;
}

ServerAddresses::Waiting::Waiting(ServerAddresses& addresses, std::function<void()> told)
    : state_(addresses.state_), told_(std::move(told)) {
  const MutexLock lock(state_->mutex);
  state_->waiting.push_back(&told_);
}

ServerAddresses::Waiting::~Waiting() {
  const MutexLock lock(state_->mutex);
  std::erase(state_->waiting, &told_);
}

}  // namespace ceems::net
