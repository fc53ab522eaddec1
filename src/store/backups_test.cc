#include "store/backups.h"

#include <atomic>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/eventually.h"

namespace ceems::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

/// Counts its copies; every second one fails.
class CountingDatabase final : public Database {
 public:
  Writer& writer() override { throw std::logic_error("not used"); }
  Reader& reader() override { throw std::logic_error("not used"); }
  Result<std::string> backup(const std::string& directory, std::stop_token /*stop*/) override {
    directory_ = directory;
    if (++copies % 2 == 0) {
      return fail(ErrorCode::kUnavailable, "the disk is full");
    }
    return "ceems-202601010000.db";
  }
  Result<> close() override { return {}; }

  std::atomic<int> copies = 0;
  std::string directory_;
};

TEST(Backups, GoOnAfterAFailure) {
  CountingDatabase database;
  ::testing::internal::CaptureStderr();
  {
    const Backups backups(database, "/copies", milliseconds(1));
    EXPECT_TRUE(testing::eventually([&] { return database.copies >= 3; }));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(database.directory_, "/copies");
  EXPECT_THAT(log, HasSubstr("backup written\" file=ceems-202601010000.db"));
  EXPECT_THAT(log, HasSubstr("backup failed\" err=\"the disk is full\""));
}

TEST(Backups, BeginAfterOneIntervalAndStopAtOnce) {
  CountingDatabase database;
  const auto begin = steady_clock::now();
  {
    const Backups backups(database, "/copies", std::chrono::hours(1));
  }
  EXPECT_EQ(database.copies, 0);
  EXPECT_LT(steady_clock::now() - begin, testing::kPatience);
}

}  // namespace
}  // namespace ceems::store
