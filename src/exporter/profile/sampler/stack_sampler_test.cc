#include "exporter/profile/sampler/stack_sampler.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter::profile {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct DescribeQueueTest : ::testing::Test {
  DescribeQueue::Time now{std::chrono::hours(1)};
  DescribeQueue queue{[this] { return now; }};
  milliseconds takes{1};

  /// Those that were described, in this order.
  std::vector<pid_t> run() {
    std::vector<pid_t> described;
    queue.run([&](pid_t pid, const stack_image& /*image*/) {
      described.push_back(pid);
      now += takes;
    });
    return described;
  }
};

TEST_F(DescribeQueueTest, DescribesEachOnce) {
  queue.add(2, {});
  queue.add(1, {});
  queue.add(2, {});
  EXPECT_THAT(run(), ElementsAre(1, 2));
  now += milliseconds(200);
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(DescribeQueueTest, GivesTheNewestImage) {
  queue.add(1, {.started = 5, .execs = 0});
  queue.add(1, {.started = 5, .execs = 3});
  queue.run([](pid_t /*pid*/, const stack_image& image) { EXPECT_EQ(image.execs, 3U); });
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(DescribeQueueTest, MakesAProcessThatChangesAllTheTimeWait) {
  int described = 0;
  for (const auto end = now + std::chrono::seconds(10); now < end; now += milliseconds(200)) {
    queue.add(1, {});
    described += static_cast<int>(run().size());
  }
  EXPECT_GE(described, 8);
  EXPECT_LE(described, 10);
}

TEST_F(DescribeQueueTest, TakesATenthOfACpuAndServesTheOthersFirst) {
  takes = milliseconds(100);
  milliseconds spent{0};
  bool served = false;
  for (const auto end = now + std::chrono::seconds(100); now < end; now += milliseconds(200)) {
    for (pid_t pid = 1; pid <= 50; ++pid) {
      queue.add(pid, {});
    }
    if (end - now < std::chrono::seconds(20) && !served) {
      queue.add(99, {});  // an honest one among them
    }
    for (const pid_t pid : run()) {
      spent += takes;
      served = served || pid == 99;
    }
  }
  EXPECT_LE(spent, milliseconds(10'500));
  EXPECT_GE(spent, milliseconds(7'000));
  EXPECT_TRUE(served);
}

}  // namespace
}  // namespace ceems::exporter::profile
