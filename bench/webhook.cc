// Sends reviews to the admission controller at a fixed rate and prints their latencies. A review
// counts from the time at which it was due, so a slow answer is not hidden by sending later.
//
//   webhook PORT RATE SECONDS CONNECTIONS REQUEST_FILE
//
// REQUEST_FILE holds one whole HTTP request. Prints "reviews=… errors=… p50_ms=… p99_ms=…
// max_ms=…".

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/strings.h"

namespace {

using std::chrono::steady_clock;

struct Load {
  std::uint16_t port = 0;
  std::string request;
  steady_clock::time_point begin;
  steady_clock::duration interval{};  ///< between the reviews of one connection
  std::size_t count = 0;              ///< of one connection
};

struct Outcome {
  std::vector<double> milliseconds;
  std::size_t errors = 0;
};

ceems::UniqueFd connect_to(std::uint16_t port) {
  ceems::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fd.reset();
  }
  return fd;
}

/// Sends the request and reads one answer with a length. False if anything else happens.
bool exchange(int fd, const std::string& request) {
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return false;
  }
  std::string got;
  std::array<char, 16384> piece{};
  while (true) {
    const ssize_t size = ::recv(fd, piece.data(), piece.size(), 0);
    if (size <= 0) {
      return false;
    }
    got.append(piece.data(), static_cast<std::size_t>(size));
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t end = got.find("\r\n\r\n");
    const std::size_t length = got.find(kLength);
    if (end == std::string::npos || length > end) {
      continue;
    }
    const std::string_view text = std::string_view(got).substr(length + kLength.size());
    const auto body = ceems::parse_int<std::size_t>(text.substr(0, text.find('\r')));
    if (!body) {
      return false;
    }
    if (got.size() >= end + 4 + *body) {
      return got.starts_with("HTTP/1.1 200 ") && got.contains("\"allowed\":true");
    }
  }
}

Outcome run(const Load& load, steady_clock::duration offset) {
  Outcome outcome;
  outcome.milliseconds.reserve(load.count);
  ceems::UniqueFd fd = connect_to(load.port);
  for (std::size_t i = 0; i < load.count; ++i) {
    const auto due = load.begin + offset + load.interval * static_cast<long>(i);
    std::this_thread::sleep_until(due);
    if (!fd.valid() || !exchange(fd.get(), load.request)) {
      ++outcome.errors;
      fd = connect_to(load.port);
      continue;
    }
    outcome.milliseconds.push_back(
        std::chrono::duration<double, std::milli>(steady_clock::now() - due).count());
  }
  return outcome;
}

int measure(const Load& load, std::size_t connections) {
  std::vector<Outcome> outcomes(connections);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < connections; ++i) {
      threads.emplace_back([&load, &outcomes, i, connections] {
        outcomes[i] =
            run(load, load.interval * static_cast<long>(i) / static_cast<long>(connections));
      });
    }
  }
  std::vector<double> all;
  std::size_t errors = 0;
  for (const Outcome& outcome : outcomes) {
    all.insert(all.end(), outcome.milliseconds.begin(), outcome.milliseconds.end());
    errors += outcome.errors;
  }
  std::ranges::sort(all);
  if (all.empty()) {
    fmt::print(stderr, "no review was answered\n");
    return 1;
  }
  const auto at = [&all](double part) {
    return all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
  };
  fmt::print("reviews={} errors={} p50_ms={:.3f} p99_ms={:.3f} max_ms={:.3f}\n", all.size(), errors,
             at(0.5), at(0.99), all.back());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  if (arguments.size() != 5) {
    fmt::print(stderr, "usage: webhook PORT RATE SECONDS CONNECTIONS REQUEST_FILE\n");
    return 1;
  }
  const auto number = [&](std::size_t i) {
    return ceems::parse_int<std::size_t>(arguments[i]).value_or(0);
  };
  const std::size_t rate = number(1);
  const std::size_t seconds = number(2);
  const std::size_t connections = number(3);
  std::ifstream file{std::string(arguments[4])};
  Load load{.port = static_cast<std::uint16_t>(number(0)),
            .request = std::string(std::istreambuf_iterator<char>(file), {}),
            .begin = steady_clock::now() + std::chrono::milliseconds(200),
            .interval = {},
            .count = rate * seconds / connections};
  if (rate == 0 || seconds == 0 || connections == 0 || load.port == 0 || load.request.empty()) {
    fmt::print(stderr, "webhook: bad arguments\n");
    return 1;
  }
  load.interval = std::chrono::nanoseconds(1'000'000'000L * static_cast<long>(connections) /
                                           static_cast<long>(rate));
  return measure(load, connections);
}
