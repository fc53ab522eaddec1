#include "exporter/energy/account/use_meter.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

using std::chrono::seconds;

/// Answers from values that a test sets, and counts the questions.
class FakeUnits final : public UnitSource {
 public:
  [[nodiscard]] std::string_view manager() const override { return "slurm"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    return fail(ErrorCode::kNoData, "unused");
  }
  void probe(std::span<UnitProbe> probes) override {
    for (UnitProbe& probe : probes) {
      if (probe.memory_above) {
        ++memory_asked;
        probe.memory_charged_bytes = charged;
        if (charged > *probe.memory_above) {
          ++memory_read;
          probe.memory_held_bytes = held;
        }
      }
      if (probe.io) {
        ++io_read;
        probe.io_bytes = io_bytes;
        if (!io_bytes) {
          probe.io_stalled_seconds = io_stalled;
        }
        probe.traffic_bytes = traffic;
        probe.traffic_notes = notes;
      }
    }
  }

  std::uint64_t charged = 0;
  std::uint64_t held = 0;
  std::optional<double> io_bytes = 0;
  std::optional<double> io_stalled;
  std::optional<double> traffic;
  std::uint64_t notes = 0;
  int memory_asked = 0;
  int memory_read = 0;
  int io_read = 0;
};

/// A node with 64 CPUs and one unit that has reserved 4 of them.
class UseMeterTest : public ::testing::Test {
 protected:
  UseMeterTest() {
    snapshot_.manager = "slurm";
    auto& entry = units_.emplace_back(std::make_unique<UnitEntry>());
    entry->manager = "slurm";
    entry->uuid = "1";
    entry->cpus = 4;
    advance(0);  // the first sample, which has no past
  }

  UnitEntry& unit() { return *units_.front(); }
  UnitUse& use() { return unit().use; }

  void advance(double cpus, int times = 1, const std::vector<DeviceUse>* devices = nullptr) {
    for (int i = 0; i < times; ++i) {
      now_ += seconds(1);
      unit().busy_cpus = cpus;
      const ManagerUnits manager{.manager = "slurm", .snapshot = known_ ? &snapshot_ : nullptr};
      meter_.advance({.time = now_,
                      .cpus_online = 64,
                      .managers = {&manager, 1},
                      .sources = sources_,
                      .has_devices = has_gpus_,
                      .devices_read = devices != nullptr,
                      .devices = devices != nullptr ? *devices : std::vector<DeviceUse>{}},
                     units_);
    }
  }
  static DeviceUse gpu(std::optional<double> busy) {
    DeviceUse use;
    use.manager = "slurm";
    use.uuid = "1";
    use.device = "GPU-a";
    use.index = "0";
    use.seconds = 1;
    use.busy = busy;
    return use;
  }
  double idle() { return use().idle_seconds().value_or(-1); }

  UseMeter meter_;
  std::shared_ptr<FakeUnits> source_ = std::make_shared<FakeUnits>();
  std::vector<std::shared_ptr<UnitSource>> sources_{source_};
  UnitSnapshot snapshot_;
  std::vector<std::unique_ptr<UnitEntry>> units_;
  bool known_ = true;
  bool has_gpus_ = false;
  Clock::SteadyTime now_{seconds(1000)};
};

// --- memory
// ---------------------------------------------------------------------------------------

TEST_F(UseMeterTest, ReadsTheMemoryOnlyWhenMoreIsChargedThanEver) {
  source_->charged = 1000;
  source_->held = 400;
  advance(1);
  EXPECT_EQ(use().memory_peak_bytes(), 400);
  source_->held = 900;  // not seen: the charge did not rise
  advance(1, 5);
  EXPECT_EQ(source_->memory_read, 1);
  EXPECT_EQ(source_->memory_asked, 6);
  source_->charged = 1001;
  source_->held = 800;
  advance(1);
  EXPECT_EQ(use().memory_peak_bytes(), 800);
  source_->charged = 5000;  // file cache
  source_->held = 300;
  advance(1);
  EXPECT_EQ(use().memory_peak_bytes(), 800) << "a peak stays";
}

TEST_F(UseMeterTest, AsksNothingOfAUnitThatSleeps) {
  source_->charged = 1000;
  source_->held = 400;
  advance(0, 100);
  EXPECT_EQ(source_->memory_asked, 0);
  EXPECT_EQ(source_->io_read, 1) << "the first one";
  EXPECT_EQ(use().memory_peak_bytes(), std::nullopt) << "not known, which is not 0";
}

TEST_F(UseMeterTest, TakesTheMemoryOfSnapshots) {
  UnitStats stats;
  use().take(stats);
  EXPECT_EQ(use().memory_shmem_bytes(), std::nullopt);
  EXPECT_EQ(use().memory_peak_bytes(), std::nullopt);
  stats.memory_shmem_bytes = 70;
  stats.memory_held_bytes = 100;
  use().take(stats);
  stats.memory_shmem_bytes = 0;
  stats.memory_held_bytes = 30;
  use().take(stats);
  EXPECT_EQ(use().memory_shmem_bytes(), 0);
  EXPECT_EQ(use().memory_peak_bytes(), 100);
}

// --- CPUs
// -----------------------------------------------------------------------------------------

TEST_F(UseMeterTest, TheMostCpusAreAMeanOfTenSeconds) {
  advance(1, 9);
  EXPECT_EQ(use().cpu_max(), std::nullopt) << "nine seconds are not ten";
  advance(1);
  EXPECT_NEAR(use().cpu_max().value_or(-1), 1, 1e-9);
  advance(4, 5);  // the last ten seconds: five at 1, five at 4
  EXPECT_NEAR(use().cpu_max().value_or(-1), 2.5, 1e-9);
  advance(0, 60);
  EXPECT_NEAR(use().cpu_max().value_or(-1), 2.5, 1e-9);
  advance(4, 30);
  EXPECT_NEAR(use().cpu_max().value_or(-1), 4, 1e-9);
}

// --- idle seconds
// ---------------------------------------------------------------------------------

TEST_F(UseMeterTest, CountsTheSecondsOfAUnitThatSleeps) {
  EXPECT_EQ(idle(), 0);
  advance(0, 60);
  EXPECT_NEAR(idle(), 60, 1e-9);
  advance(3, 60);
  EXPECT_NEAR(idle(), 60, 1e-9);
}

TEST_F(UseMeterTest, ASecondOfWorkInAMinuteIsNotIdle) {
  for (int minute = 0; minute < 5; ++minute) {
    advance(0, 59);
    advance(4);
  }
  EXPECT_NEAR(idle(), 5 * 59, 1e-9);
}

TEST_F(UseMeterTest, ABackgroundThreadIsIdleBelowTheLimit) {
  advance(0.07, 60);  // 0.02 of 4 CPUs are 0.08
  EXPECT_NEAR(idle(), 60, 1e-9);
  EXPECT_LE(source_->io_read, 8) << "I/O is read once in ten seconds";
  advance(0.09, 60);
  EXPECT_NEAR(idle(), 60, 1e-9);
}

TEST_F(UseMeterTest, ASerialProgramOnManyCpusIsNotIdle) {
  unit().cpus = 128;  // 0.02 of them are 2.56
  advance(1, 60);
  EXPECT_EQ(idle(), 0);
  unit().cpus = 0;  // no reservation: 64 CPUs of the node
  advance(0.51, 60);
  EXPECT_EQ(idle(), 0);
  advance(0.49, 61);
  EXPECT_NEAR(idle(), 61, 1e-9);
}

TEST_F(UseMeterTest, AUnitThatMovesDataIsNotIdle) {
  for (int i = 0; i < 60; ++i) {
    *source_->io_bytes += 1.1e6;
    advance(0.05);
  }
  EXPECT_EQ(idle(), 0);
  for (int i = 0; i < 60; ++i) {
    *source_->io_bytes += 0.5e6;
    advance(0.05);
  }
  EXPECT_NEAR(idle(), 60, 10) << "judged in spans";
  EXPECT_GT(idle(), 45);
}

TEST_F(UseMeterTest, IoOfBusySecondsDoesNotSpoilIdleOnes) {
  *source_->io_bytes += 500e6;
  advance(4, 30);
  advance(0.05, 41);
  EXPECT_NEAR(idle(), 40, 1e-9) << "all but the first, of which nothing is known";
}

TEST_F(UseMeterTest, WaitingForIoIsNotIdleWhereBytesAreNotCounted) {
  source_->io_bytes.reset();
  source_->io_stalled = 5;
  advance(0.05, 40);
  EXPECT_GT(idle(), 20);
  const double before = idle();
  for (int i = 0; i < 60; ++i) {
    *source_->io_stalled += 0.5;
    advance(0.05);
  }
  EXPECT_LE(idle() - before, 10);
}

TEST_F(UseMeterTest, AUnitThatSendsIsNotIdleWhereThatIsCounted) {
  source_->traffic = 0;
  const auto minute = [this](double bytes_a_second) {
    for (int scrape = 0; scrape < 4; ++scrape) {
      advance(0.05, 15);
      *source_->traffic += 15 * bytes_a_second;
      ++source_->notes;
    }
  };
  minute(2e6);
  minute(2e6);
  EXPECT_EQ(idle(), 0);
  minute(1000);
  minute(1000);
  EXPECT_GT(idle(), 80);
  EXPECT_LE(idle(), 120);
}

TEST_F(UseMeterTest, NothingIsKnownWhereIoIsNotCounted) {
  source_->io_bytes.reset();
  UseMeter fresh;
  meter_ = fresh;
  units_.front() = std::make_unique<UnitEntry>();
  unit().manager = "slurm";
  unit().uuid = "1";
  unit().cpus = 4;
  advance(0, 100);
  EXPECT_EQ(use().idle_seconds(), std::nullopt);
  EXPECT_LE(source_->io_read, 6) << "it is tried again now and then";
  source_->io_bytes = 0;
  advance(0, 60);
  EXPECT_GT(idle(), 25) << "the controller was switched on";
}

TEST_F(UseMeterTest, AWorkingGpuIsNotIdle) {
  const std::vector<DeviceUse> busy = {gpu(0.01)};
  const std::vector<DeviceUse> rests = {gpu(0)};
  const std::vector<DeviceUse> unknown = {gpu(std::nullopt)};
  has_gpus_ = true;
  advance(0, 60);
  EXPECT_EQ(idle(), 0) << "there is no reading yet";
  advance(0, 60, &busy);
  EXPECT_EQ(idle(), 0);
  advance(0, 60, &rests);
  EXPECT_NEAR(idle(), 60, 1e-9);
  advance(0, 60, &unknown);
  EXPECT_NEAR(idle(), 60, 1e-9);
  advance(0, 1, &rests);
  advance(0, 100);  // the library hangs
  EXPECT_NEAR(idle(), 91, 1e-9);
}

TEST_F(UseMeterTest, NothingIsCountedWhileUnitsAreNotKnown) {
  known_ = false;
  advance(0, 60);
  EXPECT_EQ(idle(), 0);
  EXPECT_EQ(use().cpu_max(), std::nullopt);
}

TEST_F(UseMeterTest, AnEndedUnitDoesNothing) {
  unit().ended = now_;
  advance(0, 60);
  EXPECT_EQ(idle(), 0);
}

// --- GPUs
// -----------------------------------------------------------------------------------------

TEST_F(UseMeterTest, IntegratesWhatHappensOnGpus) {
  DeviceUse first = gpu(0.5);
  first.sms = 0.25;
  first.memory_bytes = 300;
  DeviceUse second = gpu(1);
  second.device = "GPU-b";
  second.seconds = 2;
  DeviceUse other = gpu(1);
  other.uuid = "2";  // of a unit that is not known
  std::vector<DeviceUse> devices = {first, second, other};
  advance(1, 10, &devices);
  devices.front().memory_bytes = 200;
  advance(1, 1, &devices);
  advance(1, 10);  // no new reading
  ASSERT_EQ(use().gpus().size(), 2U);
  const GpuUse& a = use().gpus()[0];
  EXPECT_EQ(a.device, "GPU-a");
  EXPECT_EQ(a.index, "0");
  EXPECT_NEAR(a.busy_seconds.value_or(-1), 5.5, 1e-9);
  EXPECT_NEAR(a.sm_seconds.value_or(-1), 2.75, 1e-9);
  EXPECT_EQ(a.memory_peak_bytes, 300);
  const GpuUse& b = use().gpus()[1];
  EXPECT_NEAR(b.busy_seconds.value_or(-1), 22, 1e-9);
  EXPECT_EQ(b.sm_seconds, std::nullopt);
  EXPECT_EQ(b.memory_peak_bytes, std::nullopt);
}

}  // namespace
}  // namespace ceems::exporter::energy
