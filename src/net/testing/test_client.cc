#include "net/testing/test_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/strings.h"

namespace ceems::net {

namespace {

UniqueFd connect_to(const std::string& address) {
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (address.starts_with("unix:")) {
    sockaddr_un local{};
    local.sun_family = AF_UNIX;
    address.copy(local.sun_path, sizeof(local.sun_path) - 1, 5);
    std::memcpy(&storage, &local, sizeof(local));
    size = sizeof(local);
  } else {
    const std::size_t colon = address.rfind(':');
    const auto port = htons(parse_int<std::uint16_t>(address.substr(colon + 1)).value_or(0));
    std::string host = address.substr(0, colon);
    if (host.starts_with('[')) {
      sockaddr_in6 ip{};
      ip.sin6_family = AF_INET6;
      ip.sin6_port = port;
      host = host.substr(1, host.size() - 2);
      ::inet_pton(AF_INET6, host == "::" ? "::1" : host.c_str(), &ip.sin6_addr);
      std::memcpy(&storage, &ip, sizeof(ip));
      size = sizeof(ip);
    } else {
      sockaddr_in ip{};
      ip.sin_family = AF_INET;
      ip.sin_port = port;
      ::inet_pton(AF_INET, host.c_str(), &ip.sin_addr);
      std::memcpy(&storage, &ip, sizeof(ip));
      size = sizeof(ip);
    }
  }
  UniqueFd fd(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0 || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&storage), size) != 0) {
    fd.reset();
  }
  return fd;
}

}  // namespace

std::string RawAnswer::header(std::string_view name) const {
  const std::string* value = find_header(headers, name);
  return value == nullptr ? std::string() : *value;
}

RawConnection::RawConnection(const std::string& address) : fd_(connect_to(address)) {}

bool RawConnection::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool RawConnection::fill(std::chrono::milliseconds patience) {
  pollfd poller{fd_.get(), POLLIN, 0};
  if (::poll(&poller, 1, static_cast<int>(patience.count())) != 1) {
    return false;
  }
  std::array<char, 65536> piece{};
  const ssize_t count = ::recv(fd_.get(), piece.data(), piece.size(), 0);
  if (count <= 0) {
    return false;
  }
  received_.append(piece.data(), static_cast<std::size_t>(count));
  return true;
}

RawAnswer RawConnection::answer(bool head, std::chrono::milliseconds patience) {
  RawAnswer answer;
  std::size_t end = 0;
  while ((end = received_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill(patience)) {
      return answer;
    }
  }
  const std::string text = received_.substr(0, end);
  received_.erase(0, end + 4);
  std::string_view rest = text;
  std::string_view first = take_until(rest, '\n');
  take_word(first);
  answer.status = parse_int<int>(take_word(first)).value_or(0);
  while (!rest.empty()) {
    std::string_view line = take_until(rest, '\n');
    const std::string_view name = take_until(line, ':');
    answer.headers.emplace_back(name, trim(line));
  }
  if (head || answer.status == 204 || answer.status == 304 || answer.status < 200) {
    answer.complete = true;
    return answer;
  }
  if (answer.header("Transfer-Encoding") == "chunked") {
    while (true) {
      std::size_t line = 0;
      while ((line = received_.find("\r\n")) == std::string::npos) {
        if (!fill(patience)) {
          return answer;
        }
      }
      std::size_t size = 0;
      std::from_chars(received_.data(), received_.data() + line, size, 16);
      while (received_.size() < line + 2 + size + 2) {
        if (!fill(patience)) {
          return answer;
        }
      }
      answer.body.append(received_, line + 2, size);
      received_.erase(0, line + 2 + size + 2);
      if (size == 0) {
        answer.complete = true;
        return answer;
      }
    }
  }
  if (const auto length = parse_int<std::size_t>(answer.header("Content-Length"))) {
    while (received_.size() < *length) {
      if (!fill(patience)) {
        answer.body = received_;
        return answer;
      }
    }
    answer.body = received_.substr(0, *length);
    received_.erase(0, *length);
    answer.complete = true;
    return answer;
  }
  while (fill(patience)) {
  }
  answer.body = std::exchange(received_, {});
  answer.complete = true;
  return answer;
}

bool RawConnection::ended_within(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd poller{fd_.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&poller, 1, static_cast<int>(left.count())) != 1) {
      return false;
    }
    std::array<char, 4096> unused{};
    if (::recv(fd_.get(), unused.data(), unused.size(), 0) <= 0) {
      return true;
    }
  }
}

RawAnswer raw_get(const std::string& address, const std::string& target, const Headers& headers) {
  RawConnection connection(address);
  std::string request = "GET " + target + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n";
  for (const auto& [name, value] : headers) {
    request.append(name).append(": ").append(value).append("\r\n");
  }
  request += "\r\n";
  connection.send(request);
  return connection.answer();
}

}  // namespace ceems::net
