#include "api/profiles/pyroscope.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "net/server/server.h"
#include "testing/eventually.h"
#include "tsdb/client.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;

constexpr const char* kAnswer =
    R"({"flamegraph":{"names":["total","f"],"levels":[{"values":["0","9","0","0"]},)"
    R"({"values":["0","9","9","1"]}],"total":"9","maxSelf":"9"}})";

/// A stand-in for Pyroscope that keeps the last request.
class Stub {
 public:
  Stub() {
    net::ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    auto server = net::Server::create(
        std::move(options), [this](const net::Request& request, net::Response& response) {
          MutexLock lock(mutex_);
          asked_ = request;
          ++count_;
          changed_.notify_all();
          response = answer_;
          changed_.wait_for(lock, testing::kPatience,
                            [this]() CEEMS_REQUIRES(mutex_) { return !held_; });
        });
    EXPECT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    server_->start();
  }
  ~Stub() {
    hold(false);
    server_->stop();
  }
  Stub(const Stub&) = delete;
  Stub& operator=(const Stub&) = delete;

  [[nodiscard]] std::string url() const { return "http://" + server_->addresses().front(); }
  void answer(int status, std::string body) {
    const MutexLock lock(mutex_);
    answer_.status = status;
    answer_.body = std::move(body);
  }
  void hold(bool on) {
    const MutexLock lock(mutex_);
    held_ = on;
    changed_.notify_all();
  }
  [[nodiscard]] net::Request asked() {
    const MutexLock lock(mutex_);
    return asked_;
  }
  void wait_for_request() {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, testing::kPatience,
                                  [this]() CEEMS_REQUIRES(mutex_) { return count_ > 0; }));
  }

 private:
  Mutex mutex_;
  Condition changed_;
  bool held_ CEEMS_GUARDED_BY(mutex_) = false;
  int count_ CEEMS_GUARDED_BY(mutex_) = 0;
  net::Response answer_ CEEMS_GUARDED_BY(mutex_);
  net::Request asked_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<net::Server> server_;  ///< last, because it uses all other members
};

class Pyroscope : public ::testing::Test {
 protected:
  std::unique_ptr<PyroscopeSource> make(const std::vector<std::string>& clusters = {"a"},
                                        const SeriesOptions& options = {}) {
    ProfileServer server{.url = stub_.url() + "/"};
    server.web.basic_auth = net::ClientOptions::BasicAuth{.username = "u", .password = "p"};
    auto source = PyroscopeSource::create({server}, clusters, options);
    EXPECT_TRUE(source) << source.error().message;
    return *std::move(source);
  }
  static ProfileRequest job(const std::string& uuid) {
    return {.cluster_id = "a", .uuid = uuid, .from_ms = 1000, .to_ms = 61000};
  }

  Stub stub_;
};

TEST_F(Pyroscope, IsAskedForTheUnitAndTheTime) {
  stub_.answer(200, kAnswer);
  const auto source = make();
  const auto flame = source->profile(job("17"));
  ASSERT_TRUE(flame) << flame.error().message;
  EXPECT_EQ(flame->names, (std::vector<std::string>{"total", "f"}));
  ASSERT_EQ(flame->levels.size(), 2U);
  EXPECT_EQ(flame->levels[1].front(), (Flame::Node{0, 9, 9, 1}));
  const net::Request asked = stub_.asked();
  EXPECT_EQ(asked.method, "POST");
  EXPECT_EQ(asked.path, "/querier.v1.QuerierService/SelectMergeStacktraces");
  EXPECT_EQ(asked.body, R"({"profileTypeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds",)"
                        R"("labelSelector":"{service_name=\"17\"}","start":1000,"end":61000,)"
                        R"("maxNodes":2000})");
  const auto header = [&](std::string_view name) {
    const std::string* value = net::find_header(asked.headers, name);
    return value == nullptr ? "(none)" : *value;
  };
  EXPECT_EQ(header("Content-Type"), "application/json");
  EXPECT_EQ(header("Authorization"), "Basic dTpw");
}

TEST_F(Pyroscope, OfSeveralClustersIsAskedForOne) {
  stub_.answer(200, "{}");
  const auto source = make({"a", "b"}, {.pin_cluster = false, .cluster_label = "site"});
  EXPECT_TRUE(source->has("b"));
  EXPECT_FALSE(source->has("c"));
  ASSERT_TRUE(source->profile(job("17")));
  EXPECT_THAT(stub_.asked().body, HasSubstr(R"({service_name=\"17\",site=\"a\"})"));
  const auto alone = make({"a"}, {.pin_cluster = true});
  ASSERT_TRUE(alone->profile(job("17")));
  EXPECT_THAT(stub_.asked().body, HasSubstr(R"({service_name=\"17\",ceems_id=\"a\"})"));
}

TEST_F(Pyroscope, IsNotAskedForIdsThatCouldSelectMore) {
  stub_.answer(200, kAnswer);
  const auto source = make();
  for (const std::string uuid : {"", "1\"} or {a=\"", "1\\", "1\n", "\xff", "a\x7f"}) {
    const auto flame = source->profile(job(uuid));
    ASSERT_FALSE(flame) << uuid;
    EXPECT_EQ(flame.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(source->profile({.cluster_id = "b", .uuid = "1", .from_ms = 0, .to_ms = 1}));
  EXPECT_FALSE(source->profile({.cluster_id = "a", .uuid = "1", .from_ms = 1, .to_ms = 1}));
  EXPECT_EQ(stub_.asked().body, "");
  ASSERT_TRUE(source->profile(job("a{b}|.*'`")));
  EXPECT_THAT(stub_.asked().body, HasSubstr(R"("{service_name=\"a{b}|.*'`\"}")"));
}

TEST_F(Pyroscope, ErrorsSayWhose) {
  const auto source = make();
  const auto code = [&](int status, const std::string& body) {
    stub_.answer(status, body);
    const auto flame = source->profile(job("17"));
    EXPECT_FALSE(flame);
    EXPECT_THAT(flame.error().message, HasSubstr("Pyroscope: "));
    return flame.error().code;
  };
  EXPECT_EQ(code(401, ""), ErrorCode::kPermissionDenied);
  EXPECT_EQ(code(403, ""), ErrorCode::kPermissionDenied);
  EXPECT_EQ(code(404, "page not found"), ErrorCode::kUnavailable);
  EXPECT_EQ(code(400, R"({"code":"invalid_argument","message":"m"})"), ErrorCode::kUnavailable);
  EXPECT_EQ(code(200, "<html>"), ErrorCode::kParse);
  EXPECT_EQ(code(200, R"({"flamegraph":{"names":[],"levels":[{"values":["0","9","9","0"]}]}})"),
            ErrorCode::kParse);
  EXPECT_EQ(code(200, "{\"tree\":\"" + std::string((4U << 20U) + 1, 'x') + "\"}"),
            ErrorCode::kUnavailable);
}

TEST_F(Pyroscope, EndsWithTheClientAndWithTheServer) {
  stub_.answer(200, kAnswer);
  stub_.hold(true);
  const auto source = make();
  std::stop_source client;
  Result<Flame> given_up = fail(ErrorCode::kInternal, "not yet");
  std::thread asking([&] {
    const tsdb::CancelScope scope(client.get_token());
    given_up = source->profile(job("17"));
  });
  stub_.wait_for_request();
  client.request_stop();
  asking.join();
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().code, ErrorCode::kUnavailable);
  source->cancel();
  EXPECT_FALSE(source->profile(job("17")));
}

}  // namespace
}  // namespace ceems::api
