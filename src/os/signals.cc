#include "os/signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/fd.h"

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

}  // namespace

void block_signals() {
  const sigset_t set = watched();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int wait_for_signal() {
  sigset_t set = watched();
  sigdelset(&set, SIGPIPE);
  int number = 0;
  while (::sigwait(&set, &number) != 0) {
  }
  if (number == SIGINT || number == SIGTERM) {
    sigset_t again;
    sigemptyset(&again);
    sigaddset(&again, SIGINT);
    sigaddset(&again, SIGTERM);
    ::pthread_sigmask(SIG_UNBLOCK, &again, nullptr);
  }
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

}  // namespace ceems::os
