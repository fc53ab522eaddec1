// GPUs whose meters lie (energy/meter/lying_meters_test.cc).
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/energy/meter/held_power.h"
#include "exporter/energy/meter/lies_test_support.h"
#include "exporter/energy/meter/lying_node_test_support.h"
#include "exporter/gpu/device_energy.h"

namespace ceems::exporter::gpu {
namespace {

using energy::CounterLie;
using energy::PowerLie;
using energy::Truth;
using TruthPtr = std::shared_ptr<const Truth>;

/// What the two GPUs of a node show, and who holds them.
class Gpus {
 public:
  struct Setup {
    bool counts = true;           ///< they have counters
    bool has_power = true;        ///< and show power
    CounterLie counter_lie = {};  ///< of the second
    PowerLie power_lie = {};      ///< of the second
    bool present = true;          ///< the second
  };
  explicit Gpus(Setup setup) : setup_(std::move(setup)) {}

  std::vector<energy::DeviceSample> read(const Truth& truth) {
    const auto& [counts, has_power, counter_lie, power_lie, present] = setup_;
    std::vector<DeviceState> devices;
    for (std::size_t i = 0; i < (present ? 2 : 1); ++i) {
      DeviceState& device = devices.emplace_back();
      device.uuid = "GPU-" + std::to_string(i);
      device.utilisation = truth.gpu_use.at(i);
      device.power_limit_watts = 700;
      const auto raw = energy::microjoules(truth.gpu_joules.at(i)) + 123'456'789 * i;
      const auto counted =
          counter_lie && i == 1
              ? counter_lie(truth.second, raw, energy::microjoules(truth.gpu_joules[0]))
              : std::optional(raw);
      const double watts = truth.gpu_watts.at(i);
      if (counts && counted) {
        device.energy_joules = static_cast<double>(*counted) * 1e-6;
      }
      if (has_power) {
        device.power_watts =
            power_lie && i == 1 ? power_lie(truth.second, watts) : std::optional(watts);
      }
    }
    std::vector<energy::DeviceSample> samples;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      energy::DeviceSample sample;
      sample.source = {.name = devices[i].uuid, .domain = energy::Domain::kGpu};
      if (mirrors(devices, i)) {
        devices[i].energy_joules.reset();
      }
      if (counters_.at(i).advance(devices[i], truth.now, sample)) {
        sample.utilisation = devices[i].utilisation;
        sample.total_use = 1;
        sample.holders = {{.manager = "slurm",
                           .cgrouphostname = "",
                           .uuid = std::to_string(i),
                           .alloc = 1,
                           .use = 1}};
        samples.push_back(std::move(sample));
      }
    }
    return samples;
  }

 private:
  Setup setup_;
  std::array<DeviceCounter, 2> counters_{DeviceCounter("GPU-0"), DeviceCounter("GPU-1")};
};

energy::Instruments node(const TruthPtr& truth, Gpus::Setup setup, bool bmc) {
  const auto gpus = std::make_shared<Gpus>(std::move(setup));
  energy::Instruments all{.meters = energy::package_counters(truth), .show = {}};
  if (bmc) {
    const auto meter = std::make_shared<energy::PublishedPowerMeter>(energy::SourceInfo{
        .name = "bmc", .domain = energy::Domain::kNode, .rank = energy::kIpmiRank});
    all.meters.push_back(meter);
    all.show = [meter](const Truth& now) {
      meter->publish({.watts = std::round(now.node_watts), .time = now.now});
    };
  }
  all.devices = [gpus](const Truth& now) { return gpus->read(now); };
  return all;
}

/// Of what the jobs are due, packages, memory and GPUs alone do not show what the rest draws.
constexpr double kSeen = 0.8;

class LyingGpus : public ::testing::TestWithParam<bool> {
 protected:
  /// Whether a BMC measures the node.
  [[nodiscard]] static bool bmc() { return GetParam(); }
  [[nodiscard]] static double seen() { return bmc() ? 0.95 : kSeen; }
};

TEST_P(LyingGpus, CounterBesidePower) {
  // Power stands for it, even if it never told the truth.
  energy::expect_truth(energy::counter_lies(), {.part = true, .seen = seen()},
                       [](const TruthPtr& truth, const CounterLie& lie, bool present) {
                         return node(truth, {.counter_lie = lie, .present = present}, bmc());
                       });
}

TEST_P(LyingGpus, PowerBesideCounter) {
  energy::expect_truth(energy::power_lies(), {.part = true, .slow = true, .seen = seen()},
                       [](const TruthPtr& truth, const PowerLie& lie, bool present) {
                         return node(truth, {.power_lie = lie, .present = present}, bmc());
                       });
}

TEST_P(LyingGpus, CounterAlone) {
  energy::expect_truth(
      energy::counter_lies(), {.seen = seen()},
      [](const TruthPtr& truth, const CounterLie& lie, bool present) {
        return node(truth, {.has_power = false, .counter_lie = lie, .present = present}, bmc());
      });
}

TEST_P(LyingGpus, PowerAlone) {
  energy::expect_truth(energy::power_lies(), {.slow = true, .seen = seen()},
                       [](const TruthPtr& truth, const PowerLie& lie, bool present) {
                         return node(truth, {.counts = false, .power_lie = lie, .present = present},
                                     bmc());
                       });
}

INSTANTIATE_TEST_SUITE_P(Nodes, LyingGpus, ::testing::Bool(), [](const auto& info) {
  return info.param ? "WithABmc" : "WithoutAMeterOfTheNode";
});

}  // namespace
}  // namespace ceems::exporter::gpu
