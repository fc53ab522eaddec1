#include "host/infiniband.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::host {
namespace {

using testing::TempDir;

void write_port(const TempDir& root, const std::string& port) {
  root.write(port + "/state", "4: ACTIVE\n");
  root.write(port + "/phys_state", "5: LinkUp\n");
  root.write(port + "/rate", "100 Gb/sec (4X EDR)\n");
}

TEST(ParseInfinibandState, ReadsTheNumberBeforeTheColon) {
  EXPECT_EQ(parse_infiniband_state("4: ACTIVE\n"), 4U);
  EXPECT_EQ(parse_infiniband_state("0: <unknown>"), 0U);
  for (const char* bad : {"", "\n", ": ACTIVE", "ACTIVE", "-1: x", "4 ACTIVE: 5"}) {
    EXPECT_FALSE(parse_infiniband_state(bad)) << bad;
  }
  EXPECT_EQ(parse_infiniband_state("ACTIVE").error().message,
            "expected 'number: name', got 'ACTIVE'");
}

TEST(ParseInfinibandRate, ConvertsGigabitsToBytes) {
  EXPECT_EQ(parse_infiniband_rate("100 Gb/sec (4X EDR)\n"), 12'500'000'000U);
  EXPECT_EQ(parse_infiniband_rate("40 Gb/sec (4X QDR)"), 5'000'000'000U);
  EXPECT_EQ(parse_infiniband_rate("2.5 Gb/sec (1X SDR)"), 312'500'000U);
  EXPECT_EQ(parse_infiniband_rate("0 Gb/sec"), 0U);
  for (const char* bad : {"", "fast", "-1 Gb/sec", "nan Gb/sec", "inf Gb/sec", "1e30 Gb/sec"}) {
    EXPECT_FALSE(parse_infiniband_rate(bad)) << bad;
  }
}

TEST(ParseInfinibandCounter, AcceptsTheBasesOfTheKernelAndPortsWithoutPma) {
  EXPECT_EQ(parse_infiniband_counter("2221223609\n").value(),
            std::optional<std::uint64_t>(2221223609));
  EXPECT_EQ(parse_infiniband_counter("0").value(), std::optional<std::uint64_t>(0));
  EXPECT_EQ(parse_infiniband_counter("0x1F").value(), std::optional<std::uint64_t>(31));
  EXPECT_EQ(parse_infiniband_counter("010").value(), std::optional<std::uint64_t>(8));
  EXPECT_EQ(parse_infiniband_counter("18446744073709551615").value(),
            std::optional<std::uint64_t>(18446744073709551615U));
  EXPECT_EQ(parse_infiniband_counter("N/A (no PMA)\n").value(), std::optional<std::uint64_t>());
  for (const char* bad : {"", "-1", "0x", "08", "1 2", "18446744073709551616", "N/A"}) {
    EXPECT_FALSE(parse_infiniband_counter(bad)) << bad;
  }
}

TEST(ReadInfiniband, ReadsMellanoxAndOmniPath) {
  const TempDir root;
  root.write("class/infiniband/mlx4_0/fw_ver", "2.31.5050\n");
  root.write("class/infiniband/mlx4_0/board_id", "SM_1141000001000\n");
  root.write("class/infiniband/mlx4_0/hca_type", "MT4099\n");
  write_port(root, "class/infiniband/mlx4_0/ports/10");
  write_port(root, "class/infiniband/mlx4_0/ports/2");
  root.write("class/infiniband/mlx4_0/ports/README", "no port");
  root.write("class/infiniband/mlx4_0/ports/2/counters/symbol_error", "3\n");
  root.write("class/infiniband/hfi1_0/fw_ver", "1.27.0\n");
  root.write("class/infiniband/hfi1_0/board_id", "Omni-Path Adapter 100 Series\n");
  write_port(root, "class/infiniband/hfi1_0/ports/1");
  const auto devices = read_infiniband(root.path());
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 2U);
  EXPECT_EQ((*devices)[0].name, "hfi1_0");
  EXPECT_EQ((*devices)[0].board_id, "Omni-Path Adapter 100 Series");
  EXPECT_EQ((*devices)[0].hca_type, "");
  const InfinibandDevice& mlx4 = (*devices)[1];
  EXPECT_EQ(mlx4.firmware, "2.31.5050");
  EXPECT_EQ(mlx4.hca_type, "MT4099");
  EXPECT_TRUE(mlx4.problems.empty());
  ASSERT_EQ(mlx4.ports.size(), 2U);
  EXPECT_EQ(mlx4.ports[0].number, "2");
  EXPECT_EQ(mlx4.ports[0].state, 4U);
  EXPECT_EQ(mlx4.ports[0].physical_state, 5U);
  EXPECT_EQ(mlx4.ports[0].rate_bytes, 12'500'000'000U);
  EXPECT_EQ(mlx4.ports[1].number, "10");
  EXPECT_EQ(read_infiniband_counter(mlx4.ports[0], "counters/symbol_error").value(),
            std::optional<std::uint64_t>(3));
  EXPECT_EQ(read_infiniband_counter(mlx4.ports[0], "counters/link_downed").value(),
            std::optional<std::uint64_t>());
}

TEST(ReadInfiniband, KeepsTheValidPartsOfABrokenDevice) {
  const TempDir root;
  root.write("class/infiniband/odd/fw_ver", "1\n");
  root.write("class/infiniband/odd/ports/1/state", "?\n");
  root.write("class/infiniband/odd/ports/1/rate", "100 Gb/sec\n");
  write_port(root, "class/infiniband/odd/ports/2");
  root.write("class/infiniband/zero/node_type", "1: CA\n");
  const auto devices = read_infiniband(root.path());
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 2U);
  const InfinibandDevice& odd = (*devices)[0];
  ASSERT_EQ(odd.ports.size(), 2U);
  EXPECT_EQ(odd.ports[0].state, std::nullopt);
  EXPECT_EQ(odd.ports[0].physical_state, std::nullopt);
  EXPECT_EQ(odd.ports[0].rate_bytes, 12'500'000'000U);
  EXPECT_EQ(odd.ports[1].state, 4U);
  ASSERT_EQ(odd.problems.size(), 2U);
  EXPECT_EQ(odd.problems[0].message, (root.path() / "class/infiniband/odd/ports/1/state").string() +
                                         ": expected 'number: name', got '?'");
  EXPECT_EQ(odd.problems[1].code, ErrorCode::kNotFound);
  EXPECT_EQ((*devices)[1].firmware, std::nullopt);
  EXPECT_EQ((*devices)[1].problems.size(), 2U);  // fw_ver and ports
}

TEST(ReadInfiniband, ReturnsNoDataWithoutTheClass) {
  const TempDir root;
  const auto devices = read_infiniband(root.path());
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().code, ErrorCode::kNoData);
}

TEST(ReadInfinibandCounter, NamesTheFileThatIsNotANumber) {
  const TempDir root;
  const auto file = root.write("counters/symbol_error", "many\n");
  const InfinibandPort port{
      .number = "1", .path = root.path(), .state = {}, .physical_state = {}, .rate_bytes = {}};
  const auto value = read_infiniband_counter(port, "counters/symbol_error");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().message, file.string() + ": expected a number, got 'many'");
  EXPECT_EQ(read_infiniband_counter(port, "counters").value(), std::optional<std::uint64_t>());
}

}  // namespace
}  // namespace ceems::host
