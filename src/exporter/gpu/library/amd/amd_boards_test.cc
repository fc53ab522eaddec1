#include "exporter/gpu/library/amd/amd_boards.h"

#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

/// A table in which the driver has not set anything.
std::string table(std::uint8_t content, std::uint16_t size) {
  std::string text(size, '\xff');
  std::memcpy(text.data(), &size, sizeof(size));
  text[2] = 1;
  text[3] = static_cast<char>(content);
  return text;
}

template <class Number>
void set(std::string& table, std::size_t place, Number value) {
  std::memcpy(table.data() + place, &value, sizeof(value));
}

/// The modules of GPUs with these names and serial numbers.
std::vector<std::string> modules(const std::vector<std::pair<std::string, std::string>>& gpus) {
  std::vector<DeviceState> states(gpus.size());
  std::vector<DeviceState*> pointers;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    states[i].name = gpus[i].first;
    states[i].uuid = gpus[i].second;
    pointers.push_back(&states[i]);
  }
  find_amd_modules(pointers);
  std::vector<std::string> list;
  for (const DeviceState& state : states) {
    list.push_back(state.module);
  }
  return list;
}

TEST(AmdModules, HaveTheSerialNumberOfTwoDies) {
  const std::string name = "AMD Instinct MI250X";
  EXPECT_THAT(modules({{name, "PCB1"}, {name, "PCB1"}, {name, "PCB2"}, {name, "PCB2"}}),
              ElementsAre("PCB1", "PCB1", "PCB2", "PCB2"));
  EXPECT_THAT(modules({{name, "N/A"}, {name, "N/A"}, {name, "N/A"}, {name, "N/A"}}),
              ElementsAre("module0", "module0", "module1", "module1"));
  EXPECT_THAT(modules({{name, "PCB1"}}), ElementsAre("")) << "the other die is not visible";
  const std::string other = "AMD Instinct MI100";
  EXPECT_THAT(modules({{other, "N/A"}, {other, "N/A"}, {other, "PCB3"}}), ElementsAre("", "", ""));
}

TEST(AmdMetrics, ReadsTheTableOfAnMi250) {
  std::string text = table(3, 120);
  set<std::uint16_t>(text, 22, 93);    // average_socket_power
  set<std::uint16_t>(text, 54, 1700);  // current_gfxclk
  set<std::uint16_t>(text, 58, 1600);  // current_uclk
  set<std::uint16_t>(text, 60, 0);     // current_vclk0
  const auto metrics = parse_amd_metrics(text);
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->power_watts, 93);
  EXPECT_EQ(metrics->graphics_clock_hertz, 1.7e9);
  EXPECT_EQ(metrics->memory_clock_hertz, 1.6e9);
  EXPECT_EQ(metrics->video_clock_hertz, std::nullopt) << "no such clock";
  EXPECT_EQ(metrics->xgmi_read_bytes, std::nullopt);
  EXPECT_THAT(metrics->partitions, IsEmpty());
}

TEST(AmdMetrics, ReadsTheTablesOfMi300) {
  struct Revision {
    std::uint8_t content;
    std::uint16_t size;
    std::size_t clocks;
    std::size_t read;
    std::size_t written;
    std::size_t partitions;
    std::size_t each;
  };
  for (const Revision& revision :
       {Revision{4, 288, 240, 104, 168, 0, 0}, Revision{5, 328, 280, 144, 208, 0, 0},
        Revision{6, 1664, 264, 128, 192, 312, 168}, Revision{7, 2208, 296, 136, 200, 344, 232},
        Revision{8, 3360, 296, 136, 200, 344, 376}}) {
    SCOPED_TRACE(int{revision.content});
    std::string text = table(revision.content, revision.size);
    set<std::uint16_t>(text, 10, 550);
    set<std::uint16_t>(text, revision.clocks, 1000);
    set<std::uint16_t>(text, revision.clocks + 2, 2000);
    set<std::uint64_t>(text, revision.read, 3);
    set<std::uint64_t>(text, revision.read + 8, 4);
    set<std::uint64_t>(text, revision.written + 56, 1);
    if (revision.partitions != 0) {
      set<std::uint16_t>(text, revision.partitions - 6, 2);
      set<std::uint32_t>(text, revision.partitions, 20);
      set<std::uint32_t>(text, revision.partitions + 4, 60);
    }
    const auto metrics = parse_amd_metrics(text);
    ASSERT_TRUE(metrics);
    EXPECT_EQ(metrics->power_watts, 550);
    EXPECT_EQ(metrics->graphics_clock_hertz, 1.5e9) << "mean of the known ones";
    EXPECT_EQ(metrics->xgmi_read_bytes, 7 * 1024);
    EXPECT_EQ(metrics->xgmi_written_bytes, 1024);
    if (revision.partitions != 0) {
      EXPECT_THAT(metrics->partitions, ElementsAre(Optional(0.4), std::optional<double>()));
    }
  }
}

TEST(AmdMetrics, RefusesUnknownFormats) {
  EXPECT_FALSE(parse_amd_metrics(""));
  EXPECT_FALSE(parse_amd_metrics("abc"));
  EXPECT_FALSE(parse_amd_metrics(table(9, 4096)));
  std::string apu = table(4, 288);
  apu[2] = 2;
  EXPECT_FALSE(parse_amd_metrics(apu));
  EXPECT_FALSE(parse_amd_metrics(table(8, 3360).substr(0, 3359)));
  std::string many = table(6, 1664);
  set<std::uint16_t>(many, 306, 60'000);
  EXPECT_EQ(parse_amd_metrics(many)->partitions.size(), 8U);
}

}  // namespace
}  // namespace ceems::exporter::gpu
