#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <protozero/pbf_reader.hpp>

#include "base/mutex.h"
#include "net/gunzip.h"
#include "net/server/server.h"
#include "testing/eventually.h"

namespace ceems::exporter::profile {

/// A push as Pyroscope reads it, by the definitions of push.v1 and types.v1. Anything else in it is
/// a failure of the test.
struct DecodedPush {
  std::vector<std::pair<std::string, std::string>> labels;
  std::string raw_profile;

  [[nodiscard]] std::string label(std::string_view name) const {
    for (const auto& [known, value] : labels) {
      if (known == name) {
        return value;
      }
    }
    return "-";
  }
};

inline DecodedPush decode_push(const std::string& message) {
  using protozero::pbf_reader;
  DecodedPush push;
  pbf_reader request(message);
  EXPECT_TRUE(request.next(1));
  pbf_reader series = request.get_message();
  EXPECT_FALSE(request.next());
  while (series.next()) {
    const auto field = series.tag();
    pbf_reader inner = series.get_message();
    if (field == 1) {
      EXPECT_TRUE(inner.next(1));
      std::string name = inner.get_string();
      EXPECT_TRUE(inner.next(2));
      push.labels.emplace_back(std::move(name), inner.get_string());
    } else {
      EXPECT_EQ(field, 2U);
      EXPECT_TRUE(push.raw_profile.empty());
      EXPECT_TRUE(inner.next(1));
      push.raw_profile = inner.get_string();
    }
    EXPECT_FALSE(inner.next());
  }
  return push;
}

/// Stands in for Pyroscope. Answers with 200 or with the configured status.
class MockPyroscope {
 public:
  explicit MockPyroscope(net::ServerOptions options = {}) {
    options.listen_addresses = {"127.0.0.1:0"};
    options.max_body_bytes = std::size_t{16} << 20U;
    auto server = net::Server::create(
        std::move(options),
        [this](const net::Request& request, net::Response& response) { serve(request, response); });
    EXPECT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    server_->start();
  }
  ~MockPyroscope() {
    hold(false);
    server_->stop();
  }
  MockPyroscope(const MockPyroscope&) = delete;
  MockPyroscope& operator=(const MockPyroscope&) = delete;

  [[nodiscard]] std::string address() const { return server_->addresses()[0]; }
  [[nodiscard]] std::string url() const { return "http://" + address(); }

  /// The responses to the next requests, in this order.
  void answer(std::deque<net::Response> responses) {
    const MutexLock lock(mutex_);
    answers_ = std::move(responses);
  }
  /// Whether requests are kept without an answer.
  void hold(bool on) {
    {
      const MutexLock lock(mutex_);
      held_ = on;
    }
    changed_.notify_all();
  }
  /// Waits for `count` requests, and returns all.
  std::vector<net::Request> requests(std::size_t count) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, testing::kPatience,
                                  [&]()
                                      CEEMS_REQUIRES(mutex_) { return requests_.size() >= count; }))
        << requests_.size() << " of " << count;
    return requests_;
  }

 private:
  void serve(const net::Request& request, net::Response& response) {
    MutexLock lock(mutex_);
    requests_.push_back(request);
    changed_.notify_all();
    if (!answers_.empty()) {
      response = std::move(answers_.front());
      answers_.pop_front();
    } else {
      response.set_header("Content-Type", "application/proto");
    }
    changed_.wait_for(lock, testing::kPatience, [this]() CEEMS_REQUIRES(mutex_) { return !held_; });
  }

  Mutex mutex_;
  Condition changed_;
  bool held_ CEEMS_GUARDED_BY(mutex_) = false;
  std::deque<net::Response> answers_ CEEMS_GUARDED_BY(mutex_);
  std::vector<net::Request> requests_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<net::Server> server_;  ///< last, because it uses all other members
};

}  // namespace ceems::exporter::profile
