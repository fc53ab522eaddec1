#include "exporter/lsf/allocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/fake_runner.h"

namespace ceems::exporter::lsf {
namespace {

using std::chrono::milliseconds;
using Slots = std::map<std::string, std::size_t>;

/// Answers with what the test said last.
class FakeLsf {
 public:
  Result<AllocationMap> operator()() {
    ++asked;
    const MutexLock lock(mutex_);
    if (!error_.empty()) {
      return fail(ErrorCode::kUnavailable, "{}", error_);
    }
    AllocationMap map;
    for (const auto& [id, slots] : slots_) {
      map[id] = {.slots = slots};
    }
    return map;
  }
  void say(Slots slots, std::string error = "") {
    const MutexLock lock(mutex_);
    slots_ = std::move(slots);
    error_ = std::move(error);
  }
  std::atomic<int> asked = 0;

 private:
  Mutex mutex_;
  Slots slots_ CEEMS_GUARDED_BY(mutex_);
  std::string error_ CEEMS_GUARDED_BY(mutex_);
};

class LsfAllocations : public ::testing::Test {
 protected:
  Allocations& allocations() {
    if (!allocations_) {
      AllocationOptions options;
      options.fetch = [this](const std::stop_token&) { return fake_(); };
      options.times.patience = testing::kPatience;
      options.times.first_wait = testing::kPatience;
      options.times.period = milliseconds(2);
      allocations_ = std::make_unique<Allocations>(std::move(options), clock_);
      allocations_->start();
      allocations_->wait_first(std::chrono::steady_clock::now() + testing::kPatience);
    }
    return *allocations_;
  }
  Slots ask(const std::vector<std::string>& jobs) {
    UnitSnapshot snapshot;
    for (const std::string& job : jobs) {
      snapshot.units.emplace_back().uuid = job;
    }
    Slots slots;
    if (const auto map = allocations().of(snapshot)) {
      for (const auto& [id, allocation] : *map) {
        slots[id] = allocation.slots;
      }
    }
    return slots;
  }
  /// Repeats the request until the answer is this one.
  bool comes(const std::vector<std::string>& jobs, const Slots& expected) {
    return testing::eventually([&] { return ask(jobs) == expected; });
  }

  testing::FakeClock clock_;
  FakeLsf fake_;
  std::unique_ptr<Allocations> allocations_;  // the last member: its thread uses the others
};

TEST_F(LsfAllocations, AreKnownAtTheFirstScrape) {
  fake_.say({{"6[1]", 4}});
  EXPECT_EQ(ask({"6[1]"}), (Slots{{"6[1]", 4}}));
}

TEST_F(LsfAllocations, AreAskedForOnlyWhenJobsChangeOrAfterAQuarterOfAnHour) {
  fake_.say({{"6", 4}});
  EXPECT_TRUE(comes({"6"}, {{"6", 4}}));
  const int asked = fake_.asked;
  for (int i = 0; i < 20; ++i) {
    ask({"6"});
  }
  EXPECT_EQ(fake_.asked, asked);
  fake_.say({{"6", 4}, {"7", 2}});
  EXPECT_TRUE(comes({"6", "7"}, {{"6", 4}, {"7", 2}}));
  EXPECT_EQ(fake_.asked, asked + 1);
  clock_.advance(std::chrono::minutes(15));
  fake_.say({{"6", 8}, {"7", 2}});
  EXPECT_TRUE(comes({"6", "7"}, {{"6", 8}, {"7", 2}}));
  EXPECT_EQ(fake_.asked, asked + 2);
}

TEST_F(LsfAllocations, StayThoseOfTheLastAnswerWhileLsfFails) {
  fake_.say({{"6", 4}});
  EXPECT_TRUE(comes({"6"}, {{"6", 4}}));
  fake_.say({}, "LSF is down. Please wait ...");
  EXPECT_EQ(ask({"6", "7"}), (Slots{{"6", 4}}));
  fake_.say({{"6", 4}, {"7", 1}});
  clock_.advance(std::chrono::seconds(10));
  EXPECT_TRUE(comes({"6", "7"}, {{"6", 4}, {"7", 1}}));
}

TEST_F(LsfAllocations, AreKeptForJobsThatLsfNoLongerLists) {
  fake_.say({{"6", 4}, {"7", 2}});
  EXPECT_TRUE(comes({"6", "7"}, {{"6", 4}, {"7", 2}}));
  fake_.say({{"8", 1}});
  EXPECT_TRUE(comes({"6", "8"}, {{"6", 4}, {"8", 1}}));
}

TEST(RunBjobs, AsksForTheJobsOfTheHost) {
  testing::FakeRunner runner;
  runner.reply("bjobs", {.output = R"({"RECORDS":[{"JOBID":"6","ALLOC_SLOT":"n1"}]})"});
  const auto map = run_bjobs(runner, "/opt/lsf/bin/bjobs", "n1", {});
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->at("6").slots, 1U);
  const auto calls = runner.calls();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].path, "/opt/lsf/bin/bjobs");
  EXPECT_EQ(calls[0].arguments,
            (std::vector<std::string>{"-u", "all", "-m", "n1", "-json", "-o",
                                      "jobid jobindex alloc_slot nalloc_slot gpu_alloc"}));
  EXPECT_EQ(calls[0].timeout, std::chrono::seconds(1));
  EXPECT_FALSE(calls[0].as_root);
}

TEST(RunBjobs, TakesNoJobForAnAnswer) {
  testing::FakeRunner runner;
  runner.reply("bjobs", {.exit_status = 255, .error_text = "No unfinished job found\n"});
  const auto map = run_bjobs(runner, "/bjobs", "n1", {});
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_TRUE(map->empty());
}

TEST(RunBjobs, PassesOnWhatWentWrong) {
  testing::FakeRunner runner;
  runner.reply("bjobs", {.exit_status = 255, .error_text = "batch system daemon not responding\n"});
  EXPECT_EQ(run_bjobs(runner, "/bjobs", "n1", {}).error().message,
            "/bjobs: exit status 255: batch system daemon not responding");
  runner.reply("bjobs", {.output = "Segmentation fault"});
  EXPECT_EQ(run_bjobs(runner, "/bjobs", "n1", {}).error().code, ErrorCode::kParse);
  runner.refuse("bjobs", Error{ErrorCode::kTimeout, "no end after 1 s"});
  EXPECT_EQ(run_bjobs(runner, "/bjobs", "n1", {}).error().code, ErrorCode::kTimeout);
}

}  // namespace
}  // namespace ceems::exporter::lsf
