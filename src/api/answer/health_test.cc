// Health while the database fails or hangs.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/server.h"
#include "api/test_request.h"
#include "base/mutex.h"
#include "metrics/registry.h"
#include "testing/fake_clock.h"

namespace ceems::api {
namespace {

using Rows = Result<std::unique_ptr<store::Cursor>>;

/// A database that answers pings when it is let, and nothing else.
class HangingReader final : public store::Reader {
 public:
  Result<> ping() override {
    MutexLock lock(mutex_);
    ++pings_;
    changed_.notify_all();
    changed_.wait(lock, [this]() CEEMS_REQUIRES(mutex_) { return !hangs_; });
    return good_ ? Result<>() : nothing();
  }
  void set(bool hangs, bool good) {
    const MutexLock lock(mutex_);
    hangs_ = hangs;
    good_ = good;
    changed_.notify_all();
  }
  /// Waits until so many pings have begun.
  void wait_for_pings(int count) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [this, count]() CEEMS_REQUIRES(mutex_) { return pings_ >= count; });
  }
  int pings() {
    const MutexLock lock(mutex_);
    return pings_;
  }

  [[nodiscard]] std::uint64_t generation() const override { return 1; }
  Result<bool> is_admin(std::string_view /*user*/) override { return nothing(); }
  Result<std::vector<store::ClusterProject>> led_projects(std::string_view /*user*/) override {
    return nothing();
  }
  Result<std::vector<std::string>> leads_of(std::string_view /*cluster_id*/,
                                            std::string_view /*project*/) override {
    return nothing();
  }
  Rows units(const store::UnitQuery& /*query*/, store::FieldList /*fields*/) override {
    return nothing();
  }
  Result<std::size_t> count_member_units(const store::Scope& /*members*/,
                                         const std::vector<std::string>& /*clusters*/,
                                         const std::vector<std::string>& /*uuids*/) override {
    return nothing();
  }
  Result<std::vector<store::UnitLife>> unit_lives(
      const store::Scope& /*members*/,
      const std::string& /*cluster*/,
      const std::vector<std::string>& /*uuids*/) override {
    return nothing();
  }
  Rows users(const store::Scope& /*scope*/, const std::vector<std::string>& /*clusters*/) override {
    return nothing();
  }
  Rows admins() override { return nothing(); }
  Rows projects(const store::UsageQuery& /*query*/) override { return nothing(); }
  Rows clusters() override { return nothing(); }
  Rows stats(const std::vector<std::string>& /*clusters*/,
             const std::optional<store::TimeRange>& /*ended*/) override {
    return nothing();
  }
  Rows usage(const store::UsageQuery& /*query*/, store::FieldList /*fields*/) override {
    return nothing();
  }
  Result<std::vector<store::UsageGroup>> current_usage(
      const store::CurrentUsageQuery& /*query*/) override {
    return nothing();
  }

 private:
  static std::unexpected<Error> nothing() { return fail(ErrorCode::kUnavailable, "no database"); }

  Mutex mutex_;
  Condition changed_;
  bool hangs_ CEEMS_GUARDED_BY(mutex_) = false;
  bool good_ CEEMS_GUARDED_BY(mutex_) = true;
  int pings_ CEEMS_GUARDED_BY(mutex_) = 0;
};

class HealthTest : public ::testing::Test {
 protected:
  void make(std::chrono::milliseconds wait) {
    auto server = ApiServer::create({.health_wait = wait}, reader_, nullptr, registry_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  void TearDown() override { reader_.set(false, true); }

  net::Response health() {
    net::Response response;
    server_->handle(request_for("GET", "/health"), response);
    return response;
  }

  HangingReader reader_;
  metrics::Registry registry_{"ceems_api_server", "the API server"};
  testing::FakeClock clock_;
  std::unique_ptr<ApiServer> server_;
};

TEST_F(HealthTest, IsThatOfTheDatabase) {
  make(std::chrono::hours(1));
  EXPECT_EQ(health().status, 200);
  EXPECT_EQ(health().body, "CEEMS API Server is healthy");
  EXPECT_EQ(reader_.pings(), 2);
  reader_.set(false, false);
  EXPECT_EQ(health().status, 503);
  EXPECT_EQ(health().body, "KO");
}

TEST_F(HealthTest, IsAnsweredWhileTheDatabaseHangs) {
  make(std::chrono::milliseconds(1));
  reader_.set(true, true);
  for (int i = 0; i < 20; ++i) {
    const net::Response response = health();
    EXPECT_EQ(response.status, 503);
    EXPECT_EQ(response.body, "KO: the database has not answered within 1 ms");
  }
  reader_.wait_for_pings(1);
  EXPECT_EQ(reader_.pings(), 1);  // one question at a time
}

TEST_F(HealthTest, IsGoodAgainWhenTheDatabaseAnswers) {
  make(std::chrono::hours(1));
  reader_.set(true, true);
  net::Response waiting;
  std::jthread other([&] { waiting = health(); });
  reader_.wait_for_pings(1);
  reader_.set(false, true);
  other.join();
  EXPECT_EQ(waiting.status, 200);
  EXPECT_EQ(health().status, 200);
}

}  // namespace
}  // namespace ceems::api
