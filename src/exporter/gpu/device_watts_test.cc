#include <random>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/gpu/shared_power.h"

namespace ceems::exporter::gpu {
namespace {

using energy::DeviceSample;

/// A GPU of 75 W idle with a unit that draws 500 W per GPU and one that draws 250 W.
class DeviceWattsTest : public ::testing::Test {
 protected:
  static DeviceSample sample_of(double hot, double mild) {
    DeviceSample sample;
    sample.seconds = 1;
    sample.joules = 75 + 500 * hot + 250 * mild;
    for (const auto& [uuid, use] : {std::pair("hot", hot), std::pair("mild", mild)}) {
      if (use >= 0) {
        sample.holders.push_back(
            {.manager = "slurm", .cgrouphostname = "", .uuid = uuid, .alloc = 0.5, .use = use});
        sample.total_use += use;
      }
    }
    return sample;
  }
  DeviceSample second(double hot, double mild) {
    DeviceSample sample = sample_of(hot, mild);
    watts_.weigh(sample);
    return sample;
  }

  DeviceWatts watts_{false};
};

TEST_F(DeviceWattsTest, LearnsFromStartsAndStops) {
  for (int i = 0; i < 120; ++i) {
    second(0.4, 0);
  }
  for (int i = 0; i < 120; ++i) {
    second(0.4, 0.4);
  }
  for (int i = 0; i < 60; ++i) {
    second(0, 0.4);
  }
  const auto sample = second(0.4, 0.4);
  ASSERT_EQ(sample.holders.size(), 2U);
  EXPECT_NEAR(sample.holders[0].use / sample.total_use, 2.0 / 3, 0.04);
  EXPECT_NEAR(sample.holders[1].use / sample.total_use, 1.0 / 3, 0.04);
}

/// The hot unit's part of two that are equally busy, in percent, after an hour in which both come
/// and go and each second's use is off by up to a fifth.
double part_of_hot(DeviceWatts watts, DeviceSample (*sample_of)(double, double)) {
  std::mt19937 random(1);
  std::uniform_real_distribution off(0.8, 1.2);
  for (int second = 0; second < 3600; ++second) {
    DeviceSample sample =
        sample_of(second / 300 % 2 == 0 ? 0.4 : 0, second / 450 % 2 == 0 ? 0.4 : 0);
    sample.total_use = 0;
    for (energy::DeviceHolder& holder : sample.holders) {
      holder.use *= off(random);
      sample.total_use += holder.use;
    }
    watts.weigh(sample);
  }
  DeviceSample sample = sample_of(0.4, 0.4);
  watts.weigh(sample);
  return 100 * sample.holders[0].use / sample.total_use;
}

TEST_F(DeviceWattsTest, AveragesSampledUse) {
  EXPECT_NEAR(part_of_hot(DeviceWatts(true), sample_of), 200.0 / 3, 2);
}

TEST_F(DeviceWattsTest, DividesByUseAtFirst) {
  const auto sample = second(0.2, 0.6);
  EXPECT_NEAR(sample.holders[0].use / sample.total_use, 0.25, 1e-9);
}

TEST_F(DeviceWattsTest, LeavesASampleWithoutEnergyAlone) {
  DeviceSample sample;
  sample.holders.push_back(
      {.manager = "slurm", .cgrouphostname = "", .uuid = "a", .alloc = 1, .use = 0.5});
  sample.total_use = 0.5;
  watts_.weigh(sample);
  EXPECT_EQ(sample.holders[0].use, 0.5);
  EXPECT_EQ(sample.total_use, 0.5);
}

TEST_F(DeviceWattsTest, AUnitOnTwoInstancesIsOne) {
  DeviceSample sample;
  sample.seconds = 1;
  sample.joules = 300;
  for (const double use : {0.1, 0.3}) {
    sample.holders.push_back(
        {.manager = "slurm", .cgrouphostname = "", .uuid = "a", .alloc = 0.5, .use = use});
    sample.total_use += use;
  }
  watts_.weigh(sample);
  EXPECT_NEAR(sample.holders[1].use / sample.holders[0].use, 3, 1e-9);
}

}  // namespace
}  // namespace ceems::exporter::gpu
