#include "exporter/marks/server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "base/log.h"
#include "exporter/marks/message.h"

namespace ceems::exporter::marks {
namespace {

constexpr int kBacklog = 1024;
constexpr int kBatch = 16;  // messages of a connection before others have their turn
constexpr std::size_t kUserBuckets = 64;
constexpr double kBurst = 512;  // connections of a user at once: the ranks of an MPI program

void answer(int socket, std::string_view text) {
  [[maybe_unused]] const auto sent =
      ::send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// Whether the socket was left behind by a process that has ended.
bool is_left_behind(const sockaddr_un& address) {
  struct stat info{};
  const UniqueFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::lstat(address.sun_path, &info) == 0 && S_ISSOCK(info.st_mode) && probe.valid() &&
         ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

Result<UniqueFd> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!path.starts_with('/') || path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::kInvalidArgument,
                "{}: expected an absolute path of at most {} bytes for the socket of marks", path,
                sizeof address.sun_path - 1);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  std::error_code error;
  const auto directory = std::filesystem::path(path).parent_path();
  if (std::filesystem::create_directory(directory, error)) {
    ::chmod(directory.c_str(), 0755);
  }
  if (is_left_behind(address)) {
    ::unlink(path.c_str());
  }
  UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid() ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(listener.get(), kBacklog) != 0) {
    return fail(errno_error(errno, "socket of marks " + path));
  }
  return listener;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::create(const std::string& path,
                                               FindPeer finder,
                                               std::shared_ptr<Ledger> ledger,
                                               const Clock& clock,
                                               Limits limits) {
  CEEMS_TRY(listener, listen_at(path));
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !wake.valid()) {
    return fail(errno_error(errno, "epoll"));
  }
  std::unique_ptr<Server> server(new Server(std::move(listener), std::move(epoll), std::move(wake),
                                            std::move(finder), std::move(ledger), clock, limits));
  if (!server->arm(server->listener_.get(), false, false) ||
      !server->arm(server->wake_.get(), false, false)) {
    return fail(errno_error(errno, "epoll_ctl"));
  }
  return server;
}

Server::Server(UniqueFd listener,
               UniqueFd epoll,
               UniqueFd wake,
               FindPeer finder,
               std::shared_ptr<Ledger> ledger,
               const Clock& clock,
               Limits limits)
    : listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      finder_(std::move(finder)),
      ledger_(std::move(ledger)),
      clock_(clock),
      limits_(limits),
      messages_(limits.node_messages, 2 * limits.node_messages),
      connects_(limits.node_connects, limits.node_connects),
      users_(kUserBuckets, TokenBucket(limits.user_connects, kBurst)) {}

Server::~Server() {
  thread_.request_stop();
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Server::finish() {
  finishing_ = true;
  thread_.request_stop();
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_ = {};
}

void Server::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

/// With `once`, the socket is not reported again until it is armed again.
bool Server::arm(int socket, bool known, bool once) {
  struct epoll_event event{};
  event.events = EPOLLIN | (once ? static_cast<std::uint32_t>(EPOLLONESHOT) : 0U);
  event.data.fd = socket;
  return ::epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event) == 0;
}

int Server::wait_time() const {
  if (paused_.empty() && accepting_) {
    return -1;
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      resume_at_ - std::chrono::steady_clock::now());
  return std::max(1, static_cast<int>(left.count()) + 1);
}

/// Returns how many sockets had something, or a negative number if nothing can be read any more.
int Server::take_events(int patience) {
  std::array<struct epoll_event, 64> events{};
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), patience);
  if (count < 0 && errno != EINTR) {
    log::error("stopped reading marks", {{"err", errno_error(errno, "epoll_wait").message}});
    return -1;
  }
  int taken = 0;
  try {
    for (int i = 0; i < count; ++i) {
      const int socket = events.at(static_cast<std::size_t>(i)).data.fd;
      taken += socket == wake_.get() ? 0 : 1;
      if (socket == listener_.get()) {
        accept_all();
      } else if (socket != wake_.get()) {
        serve(socket);
      }
    }
    resume();
  } catch (const std::exception& error) {
    log::error("a mark could not be taken", {{"err", error.what()}});
  }
  return taken;
}

void Server::run(const std::stop_token& stop) {
  while (!stop.stop_requested() && take_events(wait_time()) >= 0) {
  }
  if (finishing_) {
    drain();
  }
}

void Server::drain() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (take_events(0) > 0 && std::chrono::steady_clock::now() < end) {
  }
}

void Server::accept_all() {
  for (int i = 0; i < kBatch; ++i) {
    const auto now = std::chrono::steady_clock::now();
    UniqueFd socket;
    if (connects_.take(now)) {
      socket.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid() && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)) {
        return;
      }
    }
    if (!socket.valid()) {
      // There are too many, or no descriptors are left. Further ones wait in the backlog, and
      // beyond that fail in the sender.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
      resume_at_ = paused_.empty() ? now + kPause : std::min(resume_at_, now + kPause);
      accepting_ = false;
      return;
    }
    const int number = socket.get();
    if (const auto refusal = admit(socket)) {
      refused_.at(static_cast<std::size_t>(*refusal)).fetch_add(1, std::memory_order_relaxed);
      answer(number, "refused " + std::string(to_string(*refusal)));
    } else {
      answer(number, "ok");
    }
  }
}

/// Takes the connection over, or says why not.
std::optional<Refusal> Server::admit(UniqueFd& socket) {
  const Credentials peer = credentials_of(socket.get());
  if (peer.uid != 0 &&
      !users_.at(peer.uid % users_.size()).take(std::chrono::steady_clock::now())) {
    return Refusal::kRate;
  }
  if (connections_.size() >= limits_.node_connections) {
    return Refusal::kConnections;
  }
  const auto found = finder_(peer);
  if (const Refusal* refusal = std::get_if<Refusal>(&found)) {
    return *refusal;
  }
  const auto& unit = std::get<PeerUnit>(found);
  auto entry = ledger_->open(*unit.snapshot, *unit.unit, clock_.steady_now());
  if (entry == nullptr) {
    return Refusal::kUnits;
  }
  if (gates_.size() >= 2 * Ledger::kMaxUnits) {
    std::erase_if(gates_, [](const auto& pair) { return pair.second->connections == 0; });
  }
  auto& gate = gates_[entry.get()];
  if (gate == nullptr) {
    gate = std::make_unique<Gate>(limits_);
  }
  if (gate->connections >= limits_.unit_connections) {
    return Refusal::kConnections;
  }
  const int number = socket.get();
  if (!arm(number, false)) {
    return Refusal::kConnections;
  }
  ++gate->connections;
  connections_.emplace(
      number,
      Connection{.socket = std::move(socket), .unit = std::move(entry), .gate = gate.get()});
  return std::nullopt;
}

void Server::serve(int socket) {
  const auto found = connections_.find(socket);
  if (found != connections_.end() && !read_messages(found->second)) {
    drop(socket);
  }
}

/// False if the connection is over.
bool Server::read_messages(Connection& connection) {
  const int socket = connection.socket.get();
  std::array<char, kMaxMessage + 1> buffer{};
  for (int i = 0; i < kBatch; ++i) {
    const auto real = std::chrono::steady_clock::now();
    Gate& gate = *connection.gate;
    if (real < std::max(gate.paused_until, node_paused_until_)) {
      paused_.push_back(socket);
      return true;
    }
    if (!gate.bucket.has(real) || !messages_.has(real)) {
      pause(connection);
      return true;
    }
    const auto size = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && errno == ECONNRESET) {
      continue;  // the sender has not read our answer; what it sent before comes now
    }
    if (size <= 0) {
      const bool more = size < 0 && (errno == EAGAIN || errno == EINTR);
      return more && arm(socket, true);
    }
    gate.bucket.spend();
    messages_.spend();
    const auto message =
        parse_message(std::string_view(buffer.data(), static_cast<std::size_t>(size)));
    if (!message) {
      ledger_->count_dropped(Drop::kMalformed);
    } else if (!ledger_->take(*connection.unit, *message, connection.stream, clock_.steady_now())) {
      return false;
    }
  }
  return arm(socket, true);
}

/// The unit or the node has no tokens left.
void Server::pause(Connection& connection) {
  const auto now = std::chrono::steady_clock::now();
  Gate& gate = *connection.gate;
  (gate.bucket.has(now) ? node_paused_until_ : gate.paused_until) = now + kPause;
  char byte = 0;
  std::uint64_t thrown_away = 0;
  while (thrown_away < kThrownAway && ::recv(connection.socket.get(), &byte, 1, MSG_DONTWAIT) > 0) {
    ++thrown_away;
  }
  if (thrown_away > 0) {
    ledger_->count_dropped(Drop::kRate, thrown_away);
  }
  resume_at_ = paused_.empty() && accepting_ ? now + kPause : std::min(resume_at_, now + kPause);
  paused_.push_back(connection.socket.get());
}

/// Listens again to those whose pause is over.
void Server::resume() {
  const auto now = std::chrono::steady_clock::now();
  if ((paused_.empty() && accepting_) || now < resume_at_) {
    return;
  }
  if (!accepting_) {
    accepting_ = arm(listener_.get(), false, false);
  }
  resume_at_ = now + kPause;
  std::erase_if(paused_, [&](int socket) {
    const auto found = connections_.find(socket);
    if (found == connections_.end()) {
      return true;
    }
    const auto until = std::max(found->second.gate->paused_until, node_paused_until_);
    if (until > now) {
      resume_at_ = std::min(resume_at_, until);
      return false;
    }
    if (!arm(socket, true)) {
      drop(socket);
    }
    return true;
  });
}

void Server::drop(int socket) {
  const auto found = connections_.find(socket);
  Connection& connection = found->second;
  ledger_->close(*connection.unit, connection.stream, clock_.steady_now());
  --connection.gate->connections;
  connections_.erase(found);
}

}  // namespace ceems::exporter::marks
