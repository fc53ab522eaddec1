#include "net/server/fair_queue.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::net {
namespace {

/// The names of the jobs in the order in which they are taken.
class FairQueueTest : public ::testing::Test {
 protected:
  FairQueue::Ticket add(const std::string& key, const std::string& name) {
    return queue_.add(key, [this, name](Turn turn) {
      done_ += (done_.empty() ? "" : " ") + name + (turn == Turn::kRun ? "" : "!");
    });
  }
  void take(int count) {
    for (int i = 0; i < count; ++i) {
      auto job = queue_.take();
      ASSERT_TRUE(job);
      job(Turn::kRun);
    }
  }

  FairQueue queue_;
  std::string done_;
};

TEST_F(FairQueueTest, ServesUsersInTurn) {
  for (int i = 1; i <= 1000; ++i) {
    add("mallory", "m" + std::to_string(i));
  }
  add("alice", "a1");
  add("bob", "b1");
  add("alice", "a2");
  take(6);
  EXPECT_EQ(done_, "m1 a1 b1 m2 a2 m3");
}

TEST_F(FairQueueTest, KeepsTheOrderOfOneUser) {
  for (const char* const name : {"1", "2", "3"}) {
    add("alice", name);
  }
  take(3);
  EXPECT_EQ(done_, "1 2 3");
  EXPECT_FALSE(queue_.take());
}

TEST_F(FairQueueTest, AJobIsDroppedOnceAndNotAfterItWasTaken) {
  const auto first = add("alice", "1");
  const auto second = add("alice", "2");
  const auto other = add("bob", "b");
  auto dropped = queue_.remove(second);
  ASSERT_TRUE(dropped);
  dropped(Turn::kLate);
  EXPECT_FALSE(queue_.remove(second));
  take(2);
  EXPECT_EQ(done_, "2! 1 b");
  EXPECT_FALSE(queue_.remove(first));
  EXPECT_FALSE(queue_.remove(other));
  EXPECT_FALSE(queue_.take());
}

TEST(FairQueueLimit, OfAKeyOnlySoManyRunAtOnce) {
  FairQueue queue(2);
  std::string done;
  const auto add = [&](const std::string& key) {
    queue.add(key, [&done, key](Turn /*turn*/) { done += key; });
  };
  for (const char* key : {"m", "m", "m", "m", "a"}) {
    add(key);
  }
  auto first = queue.take();
  auto second = queue.take();  // of "a", in turn
  auto third = queue.take();
  ASSERT_TRUE(first && second && third);
  EXPECT_FALSE(queue.take());  // "m" has two
  first(Turn::kRun);
  auto fourth = queue.take();
  ASSERT_TRUE(fourth);
  EXPECT_FALSE(queue.take());
  for (auto* job : {&second, &third, &fourth}) {
    (*job)(Turn::kRun);
  }
  auto last = queue.take();
  ASSERT_TRUE(last);
  last(Turn::kRun);
  EXPECT_EQ(done, "mammm");
}

}  // namespace
}  // namespace ceems::net
