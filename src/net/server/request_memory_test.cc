#include "net/server/request_memory.h"

#include <optional>

#include <gtest/gtest.h>

namespace ceems::net {
namespace {

TEST(RequestMemory, BoundsWhatAllRequestsOccupyTogether) {
  RequestMemory memory(100);
  RequestMemory::Share first(memory);
  std::optional<RequestMemory::Share> second(std::in_place, memory);
  EXPECT_TRUE(first.resize(60));
  EXPECT_TRUE(second->resize(40));
  EXPECT_FALSE(first.resize(61));
  EXPECT_EQ(memory.used(), 100U);
  second.reset();
  EXPECT_TRUE(first.resize(61));
  EXPECT_TRUE(first.resize(10));
  EXPECT_EQ(memory.used(), 10U);
}

TEST(RequestMemory, TellsOnceThatABurstIsOver) {
  RequestMemory memory(2 * RequestMemory::kBurst);
  RequestMemory::Share share(memory);
  EXPECT_TRUE(share.resize(RequestMemory::kBurst - 1));
  EXPECT_TRUE(share.resize(0));
  EXPECT_FALSE(memory.burst_is_over());
  EXPECT_TRUE(share.resize(RequestMemory::kBurst));
  EXPECT_FALSE(memory.burst_is_over());
  EXPECT_TRUE(share.resize(1000));
  EXPECT_TRUE(memory.burst_is_over());
  EXPECT_FALSE(memory.burst_is_over());
}

}  // namespace
}  // namespace ceems::net
