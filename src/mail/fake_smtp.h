#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"

namespace ceems::mail {

/// A mail server for tests, on a free port of 127.0.0.1: one connection at a time.
class FakeSmtp {
 public:
  struct Mail {
    std::string from;
    std::vector<std::string> to;
    std::string message;
  };

  FakeSmtp() {
    listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    static_cast<void>(
        ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address));
    static_cast<void>(::listen(listener_.get(), 16));
    static_cast<void>(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size));
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }

  [[nodiscard]] std::string url() const { return "smtp://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::vector<Mail> mails() const {
    const MutexLock lock(mutex_);
    return mails_;
  }
  /// The answers to a recipient and to the end of a message; "" closes the connection instead.
  void answer(std::string recipient, std::string end) {
    const MutexLock lock(mutex_);
    to_recipient_ = std::move(recipient);
    to_end_ = std::move(end);
  }

 private:
  /// A line without its end; false at the end of the connection or after a stop.
  static bool read_line(int socket,
                        std::string& buffer,
                        std::string& line,
                        const std::stop_token& stop) {
    while (true) {
      const std::size_t end = buffer.find("\r\n");
      if (end != std::string::npos) {
        line = buffer.substr(0, end);
        buffer.erase(0, end + 2);
        return true;
      }
      pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
      constexpr int kStepMs = 50;
      if (stop.stop_requested()) {
        return false;
      }
      if (::poll(&ready, 1, kStepMs) <= 0) {
        continue;
      }
      char part[4096];
      const ssize_t count = ::recv(socket, part, sizeof part, 0);
      if (count <= 0) {
        return false;
      }
      buffer.append(part, static_cast<std::size_t>(count));
    }
  }

  static bool say(int socket, const std::string& text) {
    const std::string line = text + "\r\n";
    return !text.empty() &&
           ::send(socket, line.data(), line.size(), MSG_NOSIGNAL) == std::ssize(line);
  }

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd ready{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      constexpr int kStepMs = 50;
      if (::poll(&ready, 1, kStepMs) > 0) {
        const UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (socket.valid()) {
          converse(socket.get(), stop);
        }
      }
    }
  }

  void converse(int socket, const std::stop_token& stop) {
    std::string buffer;
    std::string line;
    Mail mail;
    bool open = say(socket, "220 test");
    while (open && read_line(socket, buffer, line, stop)) {
      std::string to_recipient;
      std::string to_end;
      {
        const MutexLock lock(mutex_);
        to_recipient = to_recipient_;
        to_end = to_end_;
      }
      if (line.starts_with("MAIL FROM:")) {
        mail = {.from = line.substr(10), .to = {}, .message = {}};
        open = say(socket, "250 ok");
      } else if (line.starts_with("RCPT TO:")) {
        mail.to.push_back(line.substr(8));
        open = say(socket, to_recipient);
      } else if (line == "DATA") {
        open = say(socket, "354 go on");
        while (open && read_line(socket, buffer, line, stop) && line != ".") {
          mail.message += (line.starts_with(".") ? line.substr(1) : line) + "\r\n";
        }
        if (line == "." && (to_end.starts_with("250") || to_end.empty())) {
          const MutexLock lock(mutex_);
          mails_.push_back(mail);
        }
        open = open && line == "." && say(socket, to_end);
      } else if (line == "QUIT") {
        say(socket, "221 bye");
        open = false;
      } else {
        open = say(socket, "250 ok");
      }
    }
  }

  UniqueFd listener_;
  int port_ = 0;
  mutable Mutex mutex_;
  std::vector<Mail> mails_ CEEMS_GUARDED_BY(mutex_);
  std::string to_recipient_ CEEMS_GUARDED_BY(mutex_) = "250 ok";
  std::string to_end_ CEEMS_GUARDED_BY(mutex_) = "250 taken";
  std::jthread thread_;
};

}  // namespace ceems::mail
