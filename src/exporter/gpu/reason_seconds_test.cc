#include "exporter/gpu/reason_seconds.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter::gpu {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

using Reasons = std::vector<std::pair<std::string_view, bool>>;

class ReasonSecondsTest : public ::testing::Test {
 protected:
  /// The seconds of GPU-a after a reading with these reasons, `passed` after the one before.
  std::vector<std::pair<std::string_view, double>> read(Clock::SteadyTime::duration passed,
                                                        Reasons reasons) {
    now_ += passed;
    std::vector<DeviceState> devices(1);
    devices[0].uuid = "GPU-a";
    devices[0].clock_reasons = std::move(reasons);
    seconds_.advance(devices, now_);
    return devices[0].clock_reason_seconds;
  }

  Clock::SteadyTime now_{};
  ReasonSeconds seconds_{std::chrono::milliseconds(2000)};
};

TEST_F(ReasonSecondsTest, CountsTheTimeBetweenReadings) {
  EXPECT_THAT(read({}, {{"power_cap", true}, {"idle", false}}),
              ElementsAre(Pair("power_cap", 0), Pair("idle", 0)));
  EXPECT_THAT(read(seconds(2), {{"power_cap", true}, {"idle", false}}),
              ElementsAre(Pair("power_cap", 2), Pair("idle", 0)));
  EXPECT_THAT(read(seconds(3), {{"power_cap", false}, {"idle", true}}),
              ElementsAre(Pair("power_cap", 3.5), Pair("idle", 1.5)))
      << "half of the time in which they changed";
  EXPECT_THAT(read(seconds(0), {{"power_cap", true}, {"idle", true}}),
              ElementsAre(Pair("power_cap", 3.5), Pair("idle", 1.5)));
}

TEST_F(ReasonSecondsTest, LeavesOutWhatIsNotKnown) {
  read({}, {{"power_cap", true}});
  EXPECT_THAT(read(seconds(10), {{"power_cap", true}}), ElementsAre(Pair("power_cap", 10)));
  EXPECT_THAT(read(std::chrono::milliseconds(10'001), {{"power_cap", true}}),
              ElementsAre(Pair("power_cap", 10)))
      << "more than five intervals";
  EXPECT_THAT(read(seconds(1), {}), ElementsAre(Pair("power_cap", 10))) << "a lost GPU keeps them";
  EXPECT_THAT(read(seconds(1), {{"power_cap", true}}), ElementsAre(Pair("power_cap", 10)));
  EXPECT_THAT(read(seconds(1), {{"power_cap", true}, {"idle", true}}),
              ElementsAre(Pair("power_cap", 11), Pair("idle", 0)))
      << "a reason that was not known before";
  EXPECT_THAT(read(seconds(-1), {{"power_cap", true}, {"idle", true}}),
              ElementsAre(Pair("power_cap", 11), Pair("idle", 0)));
}

TEST_F(ReasonSecondsTest, KeepsGpusApartAndTheirNumberBounded) {
  std::vector<DeviceState> devices(ReasonSeconds::kMaxGpus + 2);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].uuid = "GPU-" + std::to_string(i);
    devices[i].clock_reasons = {{"idle", i % 2 == 0}};
  }
  devices[1].clock_reasons.clear();
  seconds_.advance(devices, now_);
  seconds_.advance(devices, now_ + seconds(1));
  EXPECT_THAT(devices[0].clock_reason_seconds, ElementsAre(Pair("idle", 1)));
  EXPECT_THAT(devices[1].clock_reason_seconds, IsEmpty()) << "its library knows no reasons";
  EXPECT_THAT(devices[3].clock_reason_seconds, ElementsAre(Pair("idle", 0)));
  EXPECT_THAT(devices.back().clock_reason_seconds, IsEmpty());
}

}  // namespace
}  // namespace ceems::exporter::gpu
