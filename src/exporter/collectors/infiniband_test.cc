#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

class InfinibandTest : public ::testing::Test {
 protected:
  InfinibandTest() : host_(dir_.path()) {
    std::filesystem::create_directories(dir_.path() / "sys");
  }

  void write(const std::string& file, std::string_view text) {
    dir_.write("sys/class/infiniband/" + file, text);
  }
  void write_port(const std::string& port) {
    write(port + "/state", "4: ACTIVE\n");
    write(port + "/phys_state", "5: LinkUp\n");
    write(port + "/rate", "100 Gb/sec (4X EDR)\n");
  }
  std::string samples() {
    if (!collector_) {
      collector_ = *create_collector(infiniband_collector(), host_.context);
    }
    return samples_of(*collector_, &result_);
  }

  testing::TempDir dir_;
  TestContext host_;
  std::unique_ptr<Collector> collector_;
  Result<> result_;
};

TEST_F(InfinibandTest, ExportsOmniPathWithoutHostname) {
  write("hfi1_0/fw_ver", "1.27.0\n");
  write("hfi1_0/board_id", "Omni-Path 100 Series\n");
  write_port("hfi1_0/ports/1");
  write("hfi1_0/ports/1/counters/port_rcv_data", "2221223609\n");
  write("hfi1_0/ports/1/counters/VL15_dropped", "0x10\n");
  write("hfi1_0/ports/1/counters/symbol_error", "N/A (no PMA)\n");
  write("hfi1_0/ports/1/counters_ext/port_xmit_data_64", "5\n");
  EXPECT_EQ(samples(),
            "ceems_infiniband_info{board_id=\"Omni-Path 100 Series\",device=\"hfi1_0\","
            "firmware_version=\"1.27.0\",hca_type=\"\"} 1\n"
            "ceems_infiniband_legacy_data_transmitted_bytes_total{device=\"hfi1_0\",port=\"1\"} "
            "20\n"
            "ceems_infiniband_physical_state_id{device=\"hfi1_0\",port=\"1\"} 5\n"
            "ceems_infiniband_port_data_received_bytes_total{device=\"hfi1_0\",port=\"1\"} "
            "8.884894436e+09\n"
            "ceems_infiniband_rate_bytes_per_second{device=\"hfi1_0\",port=\"1\"} 1.25e+10\n"
            "ceems_infiniband_state_id{device=\"hfi1_0\",port=\"1\"} 4\n"
            "ceems_infiniband_vl15_dropped_total{device=\"hfi1_0\",port=\"1\"} 16\n");
  EXPECT_TRUE(result_);
}

TEST_F(InfinibandTest, ExportsEveryCounterFile) {
  write("mlx5_0/fw_ver", "1\n");
  write_port("mlx5_0/ports/1");
  for (const char* file : {"counters/excessive_buffer_overrun_errors",
                           "counters/link_downed",
                           "counters/link_error_recovery",
                           "counters/local_link_integrity_errors",
                           "counters/multicast_rcv_packets",
                           "counters/multicast_xmit_packets",
                           "counters/port_rcv_constraint_errors",
                           "counters/port_xmit_constraint_errors",
                           "counters/port_rcv_data",
                           "counters/port_xmit_data",
                           "counters/port_rcv_discards",
                           "counters/port_xmit_discards",
                           "counters/port_rcv_errors",
                           "counters/port_rcv_packets",
                           "counters/port_xmit_packets",
                           "counters/port_xmit_wait",
                           "counters/unicast_rcv_packets",
                           "counters/unicast_xmit_packets",
                           "counters/port_rcv_remote_physical_errors",
                           "counters/port_rcv_switch_relay_errors",
                           "counters/symbol_error",
                           "counters/VL15_dropped",
                           "counters_ext/port_multicast_rcv_packets",
                           "counters_ext/port_multicast_xmit_packets",
                           "counters_ext/port_rcv_data_64",
                           "counters_ext/port_xmit_data_64",
                           "counters_ext/port_rcv_packets_64",
                           "counters_ext/port_xmit_packets_64",
                           "counters_ext/port_unicast_rcv_packets",
                           "counters_ext/port_unicast_xmit_packets"}) {
    write(std::string("mlx5_0/ports/1/") + file, "7\n");
  }
  write("mlx5_0/ports/1/hw_counters/out_of_buffer", "bad\n");
  const std::string page = samples();
  EXPECT_TRUE(result_);
  EXPECT_EQ(std::ranges::count(page, '\n'), 30 + 4);
  std::size_t sevens = 0;
  std::size_t words = 0;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = page.find('\n', at);
    const std::string line = page.substr(at, end - at);
    sevens += line.ends_with(" 7") ? 1 : 0;
    words += line.ends_with(" 28") && line.find("_bytes_total{") != std::string::npos ? 1 : 0;
    at = end + 1;
  }
  EXPECT_EQ(sevens, 26U);
  EXPECT_EQ(words, 4U);
}

TEST_F(InfinibandTest, ExportsCountersOfCongestionOnRequest) {
  write("mlx5_0/fw_ver", "1\n");
  write_port("mlx5_0/ports/1");
  const std::string directory = "mlx5_0/ports/1/hw_counters/";
  const std::string labels = "{device=\"mlx5_0\",port=\"1\"} ";
  int value = 100;
  std::string expected;
  for (const auto& [file, stem] : std::vector<std::pair<std::string, std::string>>{
           {"duplicate_request", "duplicate_requests_packets"},
           {"implied_nak_seq_err", "implied_nak_seq_errors"},
           {"local_ack_timeout_err", "local_ack_timeout_errors"},
           {"np_cnp_sent", "np_cnp_packets_sent"},
           {"np_ecn_marked_roce_packets", "np_ecn_marked_roce_packets_received"},
           {"out_of_buffer", "out_of_buffer_drops"},
           {"out_of_sequence", "out_of_sequence_packets_received"},
           {"packet_seq_err", "packet_sequence_errors"},
           {"rnr_nak_retry_err", "rnr_nak_retry_packets_received"},
           {"roce_adp_retrans_to", "roce_adp_retransmits_timeout"},
           {"roce_adp_retrans", "roce_adp_retransmits"},
           {"roce_slow_restart_cnps", "roce_slow_restart_cnps"},
           {"roce_slow_restart_trans", "roce_slow_restart"},
           {"roce_slow_restart", "roce_slow_restart_used"},
           {"rp_cnp_ignored", "rp_cnp_ignored_packets_received"},
           {"rp_cnp_handled", "rp_cnp_packets_handled"},
           {"rx_icrc_encapsulated", "rx_icrc_encapsulated_errors"}}) {
    write(directory + file, std::to_string(++value) + "\n");
    expected += "ceems_infiniband_" + stem + "_total" + labels + std::to_string(value) + "\n";
  }
  write(directory + "lifespan", "10\n");
  EXPECT_EQ(std::ranges::count(samples(), '\n'), 4);
  collector_ = *create_collector(infiniband_collector(), host_.context,
                                 {"--collector.infiniband.hw-counters"});
  std::string page = samples();
  EXPECT_TRUE(result_);
  EXPECT_EQ(std::ranges::count(page, '\n'), 4 + 17);
  for (std::size_t at = 0; at < expected.size();) {
    const std::size_t end = expected.find('\n', at) + 1;
    EXPECT_NE(page.find(expected.substr(at, end - at)), std::string::npos)
        << expected.substr(at, end - at);
    at = end;
  }
  // Malformed, hostile and missing files cost only their own series.
  write(directory + "np_cnp_sent", "many\n");
  write(directory + "out_of_buffer", "18446744073709551616\n");
  std::filesystem::remove(dir_.path() / "sys/class/infiniband" / directory / "out_of_sequence");
  page = samples();
  EXPECT_TRUE(result_);
  EXPECT_EQ(std::ranges::count(page, '\n'), 4 + 14);
  EXPECT_EQ(page.find("np_cnp_packets_sent"), std::string::npos);
}

TEST_F(InfinibandTest, KeepsValidDevicesBesideInvalidOnes) {
  write("bad0/node_type", "1: CA\n");
  write("mlx5_0/fw_ver", "1\n");
  write_port("mlx5_0/ports/1");
  write("mlx5_0/ports/1/state", "garbage\n");
  write("mlx5_0/ports/1/counters/symbol_error", "many\n");
  write("mlx5_0/ports/1/counters/link_downed", "2\n");
  const std::string page = samples();
  EXPECT_TRUE(result_);
  EXPECT_EQ(page.find("bad0"), std::string::npos);
  EXPECT_EQ(page.find("_state_id{device=\"mlx5_0\",port=\"1\"} 4"), std::string::npos);
  EXPECT_EQ(page.find("symbol_error"), std::string::npos);
  EXPECT_NE(page.find("physical_state_id{device=\"mlx5_0\",port=\"1\"} 5\n"), std::string::npos);
  EXPECT_NE(page.find("link_downed_total{device=\"mlx5_0\",port=\"1\"} 2\n"), std::string::npos);
}

TEST_F(InfinibandTest, AnUnreadableDeviceAloneIsNotAFailure) {
  write("mana_0/node_type", "1: CA\n");
  EXPECT_EQ(samples(), "");
  EXPECT_TRUE(result_);
}

TEST_F(InfinibandTest, LeavesOutDevicesByTheirWholeName) {
  write("mlx5_0/fw_ver", "1\n");
  write("mana_0/fw_ver", "2\n");
  write("my_mana_0/fw_ver", "3\n");
  collector_ = *create_collector(infiniband_collector(), host_.context,
                                 {"--collector.infiniband.device-exclude=mana_.*"});
  const std::string page = samples();
  EXPECT_NE(page.find("device=\"mlx5_0\""), std::string::npos);
  EXPECT_NE(page.find("device=\"my_mana_0\""), std::string::npos);
  EXPECT_EQ(page.find("device=\"mana_0\""), std::string::npos);
  const auto bad = create_collector(infiniband_collector(), host_.context,
                                    {"--collector.infiniband.device-exclude=("});
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().message.starts_with("--collector.infiniband.device-exclude: invalid"));
}

TEST_F(InfinibandTest, ReturnsNoDataWithoutTheClassAndNothingWithoutDevices) {
  EXPECT_EQ(samples(), "");
  ASSERT_FALSE(result_);
  EXPECT_EQ(result_.error().code, ErrorCode::kNoData);
  std::filesystem::create_directories(dir_.path() / "sys/class/infiniband");
  EXPECT_EQ(samples(), "");
  EXPECT_TRUE(result_);
}

TEST_F(InfinibandTest, RefusesASysfsRootThatIsNotADirectory) {
  host_.context.paths.sys = dir_.path() / "absent";
  const auto created = create_collector(infiniband_collector(), host_.context);
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().message,
            "--path.sysfs: " + (dir_.path() / "absent").string() + " is not a directory");
}

}  // namespace
}  // namespace ceems::exporter
