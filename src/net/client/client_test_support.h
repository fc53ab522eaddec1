#pragma once

// Servers for the tests of Client.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/mutex.h"
#include "net/client/client.h"
#include "net/server/server.h"
#include "testing/eventually.h"

namespace ceems::net {

/// A server of this project that records the requests it receives.
class Peer {
 public:
  explicit Peer(Handler handler, ServerOptions options = {}) {
    if (options.listen_addresses.empty()) {
      options.listen_addresses = {"127.0.0.1:0"};
    }
    server_ = *Server::create(std::move(options), [this, handler = std::move(handler)](
                                                      const Request& request, Response& response) {
      {
        const MutexLock lock(mutex_);
        requests_.push_back(request);
      }
      handler(request, response);
    });
    server_->start();
  }
  [[nodiscard]] std::string url() const { return "http://" + server_->addresses()[0]; }
  [[nodiscard]] std::vector<Request> requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }
  /// A header of the request with this index, or "-".
  [[nodiscard]] std::string header(std::size_t index, std::string_view name) const {
    const MutexLock lock(mutex_);
    const std::string* value =
        index < requests_.size() ? find_header(requests_[index].headers, name) : nullptr;
    return value == nullptr ? "-" : *value;
  }

 private:
  mutable Mutex mutex_;
  std::vector<Request> requests_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<Server> server_;
};

/// Accepts connections, answers each with fixed bytes and closes it. Without bytes, it keeps the
/// connections open.
class LyingPeer {
 public:
  explicit LyingPeer(std::string bytes) : bytes_(std::move(bytes)) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ::listen(listener_.get(), 16);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { run(); });
  }
  ~LyingPeer() { ::shutdown(listener_.get(), SHUT_RDWR); }
  LyingPeer(const LyingPeer&) = delete;
  LyingPeer& operator=(const LyingPeer&) = delete;
  [[nodiscard]] std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  /// Waits until a client has connected.
  [[nodiscard]] bool has_client() const {
    return ceems::testing::eventually([this] { return accepted_ > 0; });
  }

 private:
  void run() {
    std::vector<UniqueFd> open;
    while (true) {
      UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer.valid()) {
        return;
      }
      ++accepted_;
      if (bytes_.empty()) {
        open.push_back(std::move(peer));
        continue;
      }
      std::string asked(4096, '\0');
      ::recv(peer.get(), asked.data(), asked.size(), 0);
      ::send(peer.get(), bytes_.data(), bytes_.size(), MSG_NOSIGNAL);
    }
  }

  std::string bytes_;
  UniqueFd listener_;
  int port_ = 0;
  std::atomic<int> accepted_ = 0;
  std::jthread thread_;
};

inline void show(const Request& request, Response& response) {
  response.set_header("X-Kind", "echo");
  response.body =
      fmt::format("{} {}?{} {}", request.method, request.path, request.query, request.body);
}

inline std::unique_ptr<Client> client_with(ClientOptions options = {}) {
  auto client = Client::create(std::move(options));
  EXPECT_TRUE(client) << client.error().message;
  return *std::move(client);
}
}  // namespace ceems::net
