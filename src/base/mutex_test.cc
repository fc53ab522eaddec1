#include "base/mutex.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ceems {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Box {
  Mutex mutex;
  Condition changed;
  int value CEEMS_GUARDED_BY(mutex) = 0;
};

TEST(Mutex, KeepsIncrementsOfManyThreadsApart) {
  Box box;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&box] {
        for (int step = 0; step < 1000; ++step) {
          const MutexLock lock(box.mutex);
          ++box.value;
        }
      });
    }
  }
  const MutexLock lock(box.mutex);
  EXPECT_EQ(box.value, 4000);
}

TEST(Mutex, IsHeldUntilTheEndOfTheScope) {
  Mutex mutex;
  const auto taken_elsewhere = [&mutex] {
    bool taken = false;
    std::jthread([&] {
      if (mutex.try_lock()) {
        taken = true;
        mutex.unlock();
      }
    }).join();
    return taken;
  };
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(taken_elsewhere());
    lock.unlock();
    EXPECT_TRUE(taken_elsewhere());
    lock.lock();
    EXPECT_FALSE(taken_elsewhere());
    lock.unlock();
  }
  EXPECT_TRUE(taken_elsewhere());
  if (mutex.try_lock()) {
    const MutexLock lock(mutex, kAdoptLock);
    EXPECT_FALSE(taken_elsewhere());
  }
  EXPECT_TRUE(taken_elsewhere());
}

TEST(Condition, WakesWhenTheConditionHolds) {
  Box box;
  std::jthread writer([&box] {
    const MutexLock lock(box.mutex);
    box.value = 7;
    box.changed.notify_all();
  });
  MutexLock lock(box.mutex);
  box.changed.wait(lock, [&box]() CEEMS_REQUIRES(box.mutex) { return box.value == 7; });
  EXPECT_EQ(box.value, 7);
}

TEST(Condition, WaitsReturnFalseWhenTheirTimeIsUp) {
  Box box;
  MutexLock lock(box.mutex);
  const auto never = [] { return false; };
  const auto begin = steady_clock::now();
  EXPECT_FALSE(box.changed.wait_for(lock, milliseconds(20), never));
  EXPECT_GE(steady_clock::now() - begin, milliseconds(20));
  EXPECT_FALSE(box.changed.wait_until(lock, steady_clock::now(), never));
  EXPECT_TRUE(box.changed.wait_for(lock, milliseconds(0), [] { return true; }));
}

TEST(Condition, AStopRequestEndsAWait) {
  Box box;
  bool result = true;
  {
    std::jthread waiter([&](const std::stop_token& stop) {
      MutexLock lock(box.mutex);
      result = box.changed.wait(lock, stop, [] { return false; });
      result =
          box.changed.wait_for(lock, stop, std::chrono::hours(1), [] { return false; }) || result;
    });
  }
  EXPECT_FALSE(result);
}

}  // namespace
}  // namespace ceems
