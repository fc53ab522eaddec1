#include <filesystem>

#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

constexpr std::string_view kNetDev =
    "Inter-|   Receive                            |  Transmit\n"
    " face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo "
    "colls carrier compressed\n"
    "    lo: 10 2 0 0 0 0 0 0 10 2 0 0 0 0 0 0\n"
    "  eth0: 874354587 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
    "veth01: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n";

const std::string kInclude = "--collector.netdev.device-include=";
const std::string kExclude = "--collector.netdev.device-exclude=";

class NetdevTest : public ::testing::Test {
 protected:
  NetdevTest() : host_(dir_.path()) { dir_.write("proc/net/dev", kNetDev); }

  Result<std::unique_ptr<Collector>> create(const std::vector<std::string>& arguments = {}) {
    return create_collector(netdev_collector(), host_.context, arguments);
  }

  /// Devices of one family, in the order of the page.
  std::vector<std::string> devices(const std::vector<std::string>& arguments) {
    auto netdev = create(arguments);
    std::vector<std::string> found;
    const std::string samples = samples_of(**netdev);
    constexpr std::string_view kStart = "ceems_netdev_receive_bytes_total{device=\"";
    for (std::size_t at = 0; (at = samples.find(kStart, at)) != std::string::npos;) {
      at += kStart.size();
      found.push_back(samples.substr(at, samples.find('"', at) - at));
    }
    return found;
  }

  testing::TempDir dir_;
  TestContext host_;
};

TEST_F(NetdevTest, ExportsAllColumns) {
  auto netdev = create({kInclude + "^eth0$"});
  ASSERT_TRUE(netdev);
  const std::string labels = "_total{device=\"eth0\",hostname=\"n1\"} ";
  std::string expected;
  for (const auto& [stem, value] :
       std::vector<std::pair<const char*, const char*>>{{"receive_bytes", "8.74354587e+08"},
                                                        {"receive_compressed", "7"},
                                                        {"receive_dropped", "4"},
                                                        {"receive_errors", "3"},
                                                        {"receive_fifo", "5"},
                                                        {"receive_frame", "6"},
                                                        {"receive_multicast", "8"},
                                                        {"receive_packets", "2"},
                                                        {"transmit_bytes", "9"},
                                                        {"transmit_carrier", "15"},
                                                        {"transmit_colls", "14"},
                                                        {"transmit_compressed", "16"},
                                                        {"transmit_dropped", "12"},
                                                        {"transmit_errors", "11"},
                                                        {"transmit_fifo", "13"},
                                                        {"transmit_packets", "10"}}) {
    expected += std::string("ceems_netdev_") + stem + labels + value + "\n";
  }
  Result<> result;
  EXPECT_EQ(samples_of(**netdev, &result), expected);
  EXPECT_TRUE(result);
}

TEST_F(NetdevTest, FiltersWithoutAnchors) {
  EXPECT_EQ(devices({}), (std::vector<std::string>{"eth0", "lo", "veth01"}));
  EXPECT_EQ(devices({kInclude + "eth0"}), (std::vector<std::string>{"eth0", "veth01"}));
  EXPECT_EQ(devices({kExclude + "^(lo|v)"}), std::vector<std::string>{"eth0"});
  EXPECT_EQ(devices({kInclude + "none"}), std::vector<std::string>{});
}

TEST_F(NetdevTest, RefusesBadFlags) {
  const auto message = [this](const std::vector<std::string>& arguments) {
    const auto netdev = create(arguments);
    return netdev ? std::string() : netdev.error().message;
  };
  EXPECT_EQ(message({kInclude + "a", kExclude + "b"}),
            "--collector.netdev.device-include and --collector.netdev.device-exclude exclude each "
            "other");
  EXPECT_EQ(
      message({kInclude + "eth("}),
      "--collector.netdev.device-include: invalid regular expression 'eth(': missing ): eth(");
  EXPECT_EQ(message({kExclude + "(?=a)"}),
            "--collector.netdev.device-exclude: invalid regular expression '(?=a)': invalid perl "
            "operator: (?=");
  host_.context.paths.proc = dir_.path() / "proc/net/dev";
  EXPECT_EQ(message({}),
            "--path.procfs: " + (dir_.path() / "proc/net/dev").string() + " is not a directory");
}

TEST_F(NetdevTest, FailsOnAbsentAndMalformedFilesButKeepsGoodLines) {
  auto netdev = create();
  dir_.write("proc/net/dev", "a\nb\nlo: 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8\neth0: x\n");
  Result<> result;
  EXPECT_NE(samples_of(**netdev, &result).find("receive_multicast_total{device=\"lo\""),
            std::string::npos);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, (dir_.path() / "proc/net/dev").string() +
                                        ": line 4: expected 'name: 16 numbers', got 'eth0: x'");
  std::filesystem::remove(dir_.path() / "proc/net/dev");
  EXPECT_EQ(samples_of(**netdev, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ceems::exporter
