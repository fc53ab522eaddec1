#include "exporter/energy/sampler.h"

#include <atomic>
#include <string>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "exporter/energy/meter/held_power.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::energy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A unit source with one unit, whose behaviour a test sets. Safe for concurrent use.
class FakeSource final : public UnitSource {
 public:
  explicit FakeSource(const Clock& clock) : clock_(clock) {}

  [[nodiscard]] std::string_view manager() const override { return "slurm"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(milliseconds max_age) override {
    const MutexLock lock(mutex_);
    ++calls;
    if (error) {
      return fail(*error, "discovery failed");
    }
    const auto now = clock_.steady_now();
    if (!last_ || now - last_->taken > max_age) {
      ++walks;
      auto snapshot = std::make_shared<UnitSnapshot>();
      snapshot->manager = "slurm";
      snapshot->taken = now;
      snapshot->wall = clock_.now();
      Unit& unit = snapshot->units.emplace_back();
      unit.uuid = "job";
      unit.stats.reserved_cpus = 1;
      unit.stats.cpu_user_seconds = cpu_seconds;
      last_ = std::move(snapshot);
    }
    return last_;
  }
  [[nodiscard]] bool has_young() const override { return young; }
  void refresh_young() override { ++refreshes; }

  std::atomic<int> calls = 0;
  std::atomic<int> walks = 0;
  std::atomic<int> refreshes = 0;
  std::atomic<bool> young = false;
  std::atomic<double> cpu_seconds = 0;
  std::optional<ErrorCode> error;

 private:
  const Clock& clock_;
  Mutex mutex_;
  std::shared_ptr<const UnitSnapshot> last_ CEEMS_GUARDED_BY(mutex_);
};

class SamplerTest : public ::testing::Test {
 protected:
  explicit SamplerTest(const Clock* clock = nullptr)
      : clock_(clock != nullptr ? *clock : fake_), source_(std::make_shared<FakeSource>(clock_)) {
    write_stat(0);
    dir_.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n");
  }

  void write_stat(int busy_ticks) {
    dir_.write("proc/stat", "cpu  " + std::to_string(busy_ticks) +
                                " 0 0 500 0 0 0 0 0 0\ncpu0 0 0 0 5 0 0 0 0 0 0\n"
                                "cpu1 0 0 0 5 0 0 0 0 0 0\n");
  }

  Sampler& make(milliseconds interval = seconds(1),
                DeviceMeterList devices = {},
                std::unique_ptr<StateFile> state = nullptr) {
    Meters meters;
    auto meter = std::make_unique<PublishedPowerMeter>(
        SourceInfo{.name = "rapl-package-0", .domain = Domain::kPackage});
    meter_ = meter.get();
    meters.push_back(std::move(meter));
    sampler_ = std::make_unique<Sampler>(
        SamplerOptions{.interval = interval, .account = {}}, clock_,
        host::Paths{dir_.path() / "proc", dir_.path() / "sys", dir_.path() / "cgroup"},
        std::vector<std::shared_ptr<UnitSource>>{source_}, std::move(meters), std::move(devices),
        std::move(state));
    return *sampler_;
  }

  double node_joules() {
    double joules = 0;
    sampler_->with_account([&joules](Account& account, Clock::SteadyTime) {
      joules = account.node_joules(Domain::kPackage);
    });
    return joules;
  }
  double unit_joules() {
    double joules = -1;
    sampler_->with_account([&joules](Account& account, Clock::SteadyTime) {
      if (!account.units().empty()) {
        joules = account.units().front()->joules(Domain::kPackage);
      }
    });
    return joules;
  }

  testing::TempDir dir_;
  testing::FakeClock fake_;
  const Clock& clock_;
  std::shared_ptr<FakeSource> source_;
  PublishedPowerMeter* meter_ = nullptr;
  std::unique_ptr<Sampler> sampler_;
};

/// A counter of a package whose reads take a time that a test sets.
class SlowMeter final : public EnergyMeter {
 public:
  explicit SlowMeter(testing::FakeClock& clock) : clock_(clock) {}
  [[nodiscard]] const SourceInfo& source() const override { return info_; }
  Result<Reading> read(const MeterContext& context) override {
    ++reads;
    if (fails_at == reads) {
      return fail(ErrorCode::kNoData, "no value");
    }
    clock_.advance(held_up > 0 ? milliseconds(500) : milliseconds(0));
    held_up -= held_up > 0 ? 1 : 0;
    return Reading{.joules = 1, .fresh = context.now, .idle_watts = {}};
  }
  int held_up = 0;  // how many reads
  int reads = 0;
  int fails_at = 0;

 private:
  testing::FakeClock& clock_;
  SourceInfo info_{.name = "rapl-package-0", .domain = Domain::kPackage};
};

class SamplerThatIsHeldUp : public SamplerTest {
 protected:
  SamplerThatIsHeldUp() {
    auto meter = std::make_unique<SlowMeter>(fake_);
    slow_ = meter.get();
    Meters meters;
    meters.push_back(std::move(meter));
    sampler_ = std::make_unique<Sampler>(
        SamplerOptions{.interval = seconds(1), .account = {}}, fake_,
        host::Paths{dir_.path() / "proc", dir_.path() / "sys", dir_.path() / "cgroup"},
        std::vector<std::shared_ptr<UnitSource>>{source_}, std::move(meters), DeviceMeterList{},
        nullptr);
  }
  /// Takes a sample and returns how often it read the counter.
  int tick() {
    fake_.advance(seconds(1));
    const int before = slow_->reads;
    sampler_->tick(Sampler::Caller::kThread);
    return slow_->reads - before;
  }
  SlowMeter* slow_ = nullptr;
};

TEST_F(SamplerThatIsHeldUp, ReadsCountersAgain) {
  EXPECT_EQ(tick(), 1);
  EXPECT_DOUBLE_EQ(node_joules(), 1);
  slow_->held_up = 1;
  EXPECT_EQ(tick(), 2);
  EXPECT_DOUBLE_EQ(node_joules(), 3);  // all that was read counts
  slow_->held_up = 100;
  EXPECT_EQ(tick(), 3);
  EXPECT_DOUBLE_EQ(node_joules(), 6);
}

TEST_F(SamplerThatIsHeldUp, KeepsWhatWasReadBeforeAFailure) {
  tick();
  slow_->held_up = 1;
  slow_->fails_at = 3;
  EXPECT_EQ(tick(), 2);
  EXPECT_DOUBLE_EQ(node_joules(), 2);
  EXPECT_EQ(tick(), 1);
  EXPECT_DOUBLE_EQ(node_joules(), 3);
}

TEST_F(SamplerThatIsHeldUp, ReadsOnceWhereTheMachineIsAlwaysSlow) {
  slow_->held_up = 1000;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(tick(), 3) << i;
  }
  EXPECT_EQ(tick(), 1);
  slow_->held_up = 0;
  EXPECT_EQ(tick(), 1);
  slow_->held_up = 1000;
  EXPECT_EQ(tick(), 3);
}

TEST_F(SamplerTest, SharesEnergyByCpuTime) {
  Sampler& sampler = make();
  meter_->publish({.watts = 100, .time = fake_.steady_now()});
  sampler.tick(Sampler::Caller::kThread);
  fake_.advance(seconds(1));
  // 100 J when idle: all of it is idle energy, half of it reserved.
  sampler.tick(Sampler::Caller::kThread);
  EXPECT_DOUBLE_EQ(unit_joules(), 50);
  for (int i = 1; i <= 10; ++i) {
    fake_.advance(seconds(1));
    meter_->publish({.watts = 300, .time = fake_.steady_now() - seconds(1)});
    source_->cpu_seconds = i;
    write_stat(200 * i);  // both CPUs are busy, one for the unit
    sampler.tick(Sampler::Caller::kThread);
  }
  // The other CPU belongs to the system.
  EXPECT_NEAR(unit_joules(), 50 + 10 * 150, 1);
  EXPECT_DOUBLE_EQ(node_joules(), 3100);
}

/// One GPU of 200 W that the first unit of the snapshot holds.
class FakeDevices final : public DeviceMeters {
 public:
  explicit FakeDevices(Clock::SteadyTime begin) : last_(begin) {}

  void read(const MeterContext& context,
            std::span<const ManagerUnits> managers,
            std::vector<DeviceSample>& samples) override {
    ASSERT_EQ(managers.size(), 1U);
    ASSERT_NE(managers[0].snapshot, nullptr);
    DeviceSample& sample = samples.emplace_back();
    sample.source = {.name = "GPU-a", .domain = Domain::kGpu};
    sample.seconds = std::chrono::duration<double>(context.now - last_).count();
    sample.joules = 200 * sample.seconds;
    sample.fresh = context.now;
    sample.total_use = 1;
    sample.holders = {{.manager = std::string(managers[0].manager),
                       .cgrouphostname = "",
                       .uuid = managers[0].snapshot->units.front().uuid,
                       .alloc = 1,
                       .use = 1}};
    last_ = context.now;
  }

 private:
  Clock::SteadyTime last_;
};

TEST_F(SamplerTest, GivesDevicesToTheirHolders) {
  Sampler& sampler = make(seconds(1), {std::make_shared<FakeDevices>(fake_.steady_now())});
  sampler.tick(Sampler::Caller::kThread);
  for (int i = 0; i < 5; ++i) {
    fake_.advance(seconds(1));
    sampler.tick(Sampler::Caller::kThread);
  }
  sampler.with_account([](Account& account, Clock::SteadyTime) {
    ASSERT_EQ(account.units().size(), 1U);
    EXPECT_DOUBLE_EQ(account.units().front()->joules(Domain::kGpu), 1000);
    EXPECT_DOUBLE_EQ(account.node_joules(Domain::kGpu), 1000);
  });
}

TEST_F(SamplerTest, TicksForAScrapeOnlyWhenTheLastTickIsOld) {
  Sampler& sampler = make();
  meter_->publish({.watts = 100, .time = fake_.steady_now()});
  sampler.tick(Sampler::Caller::kThread);
  fake_.advance(milliseconds(200));
  sampler.tick(Sampler::Caller::kScrape);
  EXPECT_EQ(source_->calls, 1);
  fake_.advance(milliseconds(100));
  sampler.tick(Sampler::Caller::kScrape);
  EXPECT_EQ(source_->calls, 2);
  EXPECT_EQ(source_->walks, 2);  // energy of 0.3 s goes by CPU time of 0.3 s
  EXPECT_NEAR(node_joules(), 30, 1e-9);
}

TEST_F(SamplerTest, SharesASnapshotThatAScrapeHasJustTaken) {
  Sampler& sampler = make();
  ASSERT_TRUE(source_->snapshot(milliseconds(0)));
  fake_.advance(milliseconds(40));
  sampler.tick(Sampler::Caller::kScrape);
  EXPECT_EQ(source_->walks, 1);
  fake_.advance(milliseconds(960));
  sampler.tick(Sampler::Caller::kThread);
  EXPECT_EQ(source_->walks, 2);
}

TEST_F(SamplerTest, KeepsUnitsWhileDiscoveryFailsAndEndsThemWhenNoneIsLeft) {
  Sampler& sampler = make();
  const auto ended = [&] {
    bool value = false;
    sampler.with_account([&value](Account& account, Clock::SteadyTime) {
      value = account.units().front()->ended.has_value();
    });
    return value;
  };
  sampler.tick(Sampler::Caller::kThread);
  source_->error = ErrorCode::kInternal;
  fake_.advance(seconds(1));
  sampler.tick(Sampler::Caller::kThread);
  EXPECT_FALSE(ended());
  source_->error = ErrorCode::kNoData;
  fake_.advance(seconds(1));
  sampler.tick(Sampler::Caller::kThread);
  EXPECT_TRUE(ended());
}

TEST_F(SamplerTest, GoesOnWithoutProc) {
  dir_.write("proc/stat", "nonsense\n");
  dir_.write("proc/meminfo", "\xff\n");
  Sampler& sampler = make();
  meter_->publish({.watts = 100, .time = fake_.steady_now()});
  ::testing::internal::CaptureStderr();
  sampler.tick(Sampler::Caller::kThread);
  fake_.advance(seconds(1));
  sampler.tick(Sampler::Caller::kThread);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_DOUBLE_EQ(node_joules(), 100);
  for (const std::string file : {"/proc/stat", "/proc/meminfo"}) {
    const auto said = log.find(file);
    EXPECT_NE(said, std::string::npos) << file << " is not in the log: " << log;
  }
}

class SamplerThreadTest : public SamplerTest {
 protected:
  SamplerThreadTest() : SamplerTest(&real_clock()) {}
};

TEST_F(SamplerThreadTest, TicksAndRefreshesYoungUnits) {
  source_->young = true;
  Sampler& sampler = make(milliseconds(450));
  meter_->publish({.watts = 1000, .time = clock_.steady_now()});
  sampler.start();
  EXPECT_TRUE(testing::eventually([&] {
    // Scrapes and the sampler run at the same time, for ThreadSanitizer.
    sampler.tick(Sampler::Caller::kScrape);
    meter_->publish({.watts = 1000, .time = clock_.steady_now()});
    sampler.with_account([](Account& account, Clock::SteadyTime) { account.mark_scraped(); });
    return source_->calls >= 2 && source_->refreshes >= 2;
  }));
  EXPECT_GT(node_joules(), 0);
}

TEST_F(SamplerThreadTest, StopsWithoutWaitingForTheNextTick) {
  for (const bool young : {true, false}) {
    source_->young = young;
    Sampler& sampler = make(std::chrono::minutes(10));
    sampler.start();
    sampler.wait_first(clock_.steady_now() + testing::kPatience);
    const auto before = clock_.steady_now();
    sampler_.reset();
    EXPECT_LT(clock_.steady_now() - before, testing::kPatience);
  }
}

TEST_F(SamplerThreadTest, ContinuesWithItsStateFileAndLeavesOne) {
  const std::string path = dir_.path() / "energy.json";
  const MachineIdentity machine{.id = "id", .cpu = "cpu", .sockets = 1, .cpus = 2};
  const auto state = [&] { return std::make_unique<StateFile>(path, machine, clock_); };
  Learned before;
  before.add({.domain = Domain::kPackage,
              .meters = "rapl-package-0",
              .bins = {{.use = 0, .watts = 37, .windows = 90}}});
  before.add({.domain = Domain::kGpu,
              .device = "GPU-1",
              .bins = {{.use = 0, .watts = 70, .windows = 90}}});
  before.numbers["lag"] = 2;
  dir_.write("energy.json", to_json(before, machine));
  Sampler& sampler = make(milliseconds(100), {}, state());
  meter_->publish({.watts = 1000, .time = clock_.steady_now()});
  sampler.start();
  sampler.wait_first(clock_.steady_now() + testing::kPatience);
  sampler.with_account([](Account& account, Clock::SteadyTime) {
    EXPECT_DOUBLE_EQ(account.idle_watts(Domain::kPackage).value_or(-1), 37);
  });
  // A shutdown writes what is in use, here with one window more, and what is not there this time.
  sampler.with_account([](Account& account, Clock::SteadyTime) {
    Learned window;
    window.add({.domain = Domain::kPackage,
                .meters = "rapl-package-0",
                .bins = {{.use = 1, .watts = 1000, .windows = 1}}});
    account.restore(window);
  });
  sampler_.reset();
  const Learned after = StateFile(path, machine, clock_).load();
  ASSERT_EQ(after.idle.size(), 2U);
  EXPECT_EQ(after.idle.at(0).bins,
            (std::vector<IdlePower::Bin>{{.use = 0, .watts = 37, .windows = 90},
                                         {.use = 1, .watts = 1000, .windows = 1}}));
  EXPECT_EQ(after.idle.at(1).device, "GPU-1");
  EXPECT_EQ(after.numbers.at("lag"), 2);
}

TEST_F(SamplerThreadTest, RunsWithoutAWritableStateFile) {
  Sampler& sampler = make(
      milliseconds(100), {},
      std::make_unique<StateFile>(dir_.path() / "none/energy.json", MachineIdentity{}, clock_));
  meter_->publish({.watts = 1000, .time = clock_.steady_now()});
  sampler.start();
  sampler.wait_first(clock_.steady_now() + testing::kPatience);
  EXPECT_TRUE(testing::eventually([&] { return source_->calls >= 3; }));
}

}  // namespace
}  // namespace ceems::exporter::energy
