#include "host/net_dev.h"

#include <gtest/gtest.h>

namespace ceems::host {
namespace {

constexpr std::string_view kHeadings =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
    "fifo colls carrier compressed\n";

TEST(ParseNetDev, ReadsBothDirections) {
  const std::string text = std::string(kHeadings) +
                           "    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                           "eth0:1:18446744073709551615 0 0 0 0 0 0 0 7 0 0 0 0 0 0 0\n";
  std::vector<NetDevice> devices{{}};
  ASSERT_TRUE(parse_net_dev(text, devices));
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0],
            (NetDevice{"lo", {1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11, 12, 13, 14, 15, 16}}));
  EXPECT_EQ(devices[1].name, "eth0:1");
  EXPECT_EQ(devices[1].receive[0], 18446744073709551615U);
  EXPECT_EQ(devices[1].transmit[0], 7U);
}

TEST(ParseNetDev, ReportsTheFirstBadLineAndKeepsTheOthers) {
  const std::string text = std::string(kHeadings) +
                           "eth0: 1 2 3\n"
                           "no colon\n"
                           "   lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
  std::vector<NetDevice> devices;
  const auto done = parse_net_dev(text, devices);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kParse);
  EXPECT_EQ(done.error().message, "line 3: expected 'name: 16 numbers', got 'eth0: 1 2 3'");
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].name, "lo");
}

TEST(ParseNetDev, RejectsSignsOverflowAndDevicesWithoutName) {
  for (const char* line :
       {": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "a: -1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
        "a: 18446744073709551616 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"}) {
    std::vector<NetDevice> devices;
    EXPECT_FALSE(parse_net_dev(std::string(kHeadings) + line, devices)) << line;
    EXPECT_TRUE(devices.empty()) << line;
  }
}

TEST(ParseNetDev, FindsNothingInAnEmptyFile) {
  std::vector<NetDevice> devices;
  EXPECT_TRUE(parse_net_dev("", devices));
  EXPECT_TRUE(parse_net_dev(kHeadings, devices));
  EXPECT_TRUE(devices.empty());
}

}  // namespace
}  // namespace ceems::host
