#include "os/signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "base/strings.h"

namespace ceems::os {
namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    sigaddset(&set, number);
  }
  return set;
}

sigset_t awaited() {
  sigset_t set = watched();
  sigdelset(&set, SIGPIPE);
  return set;
}

/// A second SIGINT or SIGTERM ends the program at once.
void unblock_after(int number) {
  if (number != SIGINT && number != SIGTERM) {
    return;
  }
  sigset_t again;
  sigemptyset(&again);
  sigaddset(&again, SIGINT);
  sigaddset(&again, SIGTERM);
  ::pthread_sigmask(SIG_UNBLOCK, &again, nullptr);
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

void block_signals() {
  const sigset_t set = watched();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int wait_for_signal() {
  const sigset_t set = awaited();
  int number = 0;
  while (::sigwait(&set, &number) != 0) {
  }
  unblock_after(number);
  return number;
}

std::optional<int> wait_for_signal(std::chrono::milliseconds most) {
  const sigset_t set = awaited();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec limit{.tv_sec = seconds.count(),
                       .tv_nsec = std::chrono::nanoseconds(most - seconds).count()};
  const int number = ::sigtimedwait(&set, nullptr, &limit);
  if (number < 0) {
    return std::nullopt;
  }
  unblock_after(number);
  return number;
}

void notify_systemd(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (path == nullptr || (path[0] != '/' && path[0] != '@') ||
      std::strlen(path) >= sizeof(address.sun_path)) {
    return;
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path, std::strlen(path));
  if (address.sun_path[0] == '@') {
    address.sun_path[0] = '\0';  // abstract socket, see unix(7)
  }
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) {
    return;
  }
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  // Best effort: if the message is lost, systemd's own start timeout applies.
  static_cast<void>(::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&address), length));
}

std::optional<std::chrono::microseconds> watchdog_limit() {
  const auto limit = parse_int<std::int64_t>(environment("WATCHDOG_USEC"));
  const std::string_view process = environment("WATCHDOG_PID");
  if (!limit || *limit <= 0 || (!process.empty() && parse_int<int>(process) != ::getpid())) {
    return std::nullopt;
  }
  return std::chrono::microseconds(*limit);
}

}  // namespace ceems::os
