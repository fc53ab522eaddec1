#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "net/relay/relay.h"
#include "net/server/server.h"
#include "net/testing/test_client.h"
#include "testing/eventually.h"

namespace ceems::net {

inline std::unique_ptr<Server> serve(Handler handler, ServerOptions options = {}) {
  options.listen_addresses = {"127.0.0.1:0"};
  options.max_body_bytes = std::size_t{64} << 20U;
  auto server = Server::create(std::move(options), std::move(handler));
  EXPECT_TRUE(server) << server.error().message;
  (*server)->start();
  return *std::move(server);
}

inline std::shared_ptr<Upstream> upstream(const std::string& address,
                                          UpstreamOptions options = {}) {
  const auto colon = address.rfind(':');
  options.host = address.substr(0, colon);
  options.port = address.substr(colon + 1);
  auto made = Upstream::create(std::move(options));
  EXPECT_TRUE(made);
  return *made;
}

/// A fixture with a server that passes all requests on to others.
class RelayTest : public ::testing::Test {
 protected:
  void pass_to(const std::vector<std::shared_ptr<Upstream>>& others, bool repeatable = true) {
    front_ = serve([this, others, repeatable](const Request& request, Response& response) {
      auto relay = std::make_shared<Relay>();
      for (const auto& other : others) {
        relay->attempts.push_back({.upstream = other,
                                   .method = request.method,
                                   .target = request.target,
                                   .host = "backend",
                                   .headers = without_hop_fields(request.headers)});
        std::erase_if(relay->attempts.back().headers, [](const auto& field) {
          return field.first == "Host" || field.first == "Content-Length";
        });
      }
      relay->body = request.body;
      relay->user = request.path;
      relay->repeatable = repeatable;
      relay->filter = filter;
      relay->unavailable.status = 503;
      relay->unavailable.body = "nobody there";
      relay->done = [this](const RelayEnd& end) {
        const MutexLock lock(mutex_);
        ends_.push_back(end);
      };
      response.relay = std::move(relay);
    });
  }
  [[nodiscard]] std::string address() const { return front_->addresses()[0]; }
  std::vector<RelayEnd> ends() {
    const MutexLock lock(mutex_);
    return ends_;
  }
  bool wait_for_ends(std::size_t count) {
    return ceems::testing::eventually([&] { return ends().size() >= count; });
  }

  std::function<std::unique_ptr<BodyFilter>(int, const Headers&)> filter;

 private:
  Mutex mutex_;
  std::vector<RelayEnd> ends_ CEEMS_GUARDED_BY(mutex_);

 protected:
  std::unique_ptr<Server> front_;
};

/// Responds with the request that it received.
inline void echo(const Request& request, Response& response) {
  response.set_header("Content-Type", "text/plain");
  response.set_header("X-Back", "yes");
  const std::string* const host = find_header(request.headers, "Host");
  response.body = fmt::format("{} {} {} {}", request.method, request.target,
                              host == nullptr ? "-" : *host, request.body);
}

}  // namespace ceems::net
