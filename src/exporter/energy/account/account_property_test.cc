// Checks the invariant of account.h on random histories of nodes: for every domain and after every
// sample, units, system and unallocated together got what the node used, and no counter is negative
// or decreases.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/energy/account/account.h"
#include "exporter/energy/meter/counter_unwrap.h"
#include "exporter/energy/meter/held_power.h"
#include "testing/histories.h"

namespace ceems::exporter::energy {
namespace {

constexpr int kMaxUuid = 20;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool chance(double probability) { return uniform(0, 1) < probability; }

 private:
  std::mt19937_64 engine_;
};

/// A hardware counter that often wraps and sometimes vanishes, jumps, or goes on in a suspended
/// machine.
struct SimulatedCounter {
  SimulatedCounter(std::uint64_t range, Domain domain, std::optional<double> limit_watts)
      : range_uj(range), unwrap(range, power_bound(domain, limit_watts)) {}

  std::optional<Reading> read(Random& random,
                              double joules,
                              Clock::SteadyTime now,
                              std::chrono::nanoseconds suspended) {
    if (random.chance(0.05)) {
      joules += random.uniform(0, random.chance(0.5) ? 20'000 : 1e6);
    }
    raw_uj = (raw_uj + static_cast<std::uint64_t>(joules * 1e6)) % range_uj;
    if (gone > 0) {
      --gone;
    } else if (random.chance(0.03)) {
      gone = random.pick(1, 6);
      if (random.chance(0.3)) {
        raw_uj = 0;  // the driver was loaded again
      }
    }
    if (gone > 0) {
      unwrap.miss();
      return std::nullopt;
    }
    const double seconds = std::chrono::duration<double>(now - std::exchange(last, now)).count();
    const double held_back = unwrap.held_back_joules();
    const Reading reading{
        .joules = unwrap.advance(raw_uj, now, suspended), .fresh = now, .idle_watts = {}};
    // The last of the steps that confirm each other may show kAgreement times their power.
    const double most = std::max(CounterUnwrap::kMargin * seconds + CounterUnwrap::kSlack,
                                 CounterUnwrap::kAgreement * seconds);
    EXPECT_LE(reading.joules, held_back + unwrap.expected_watts() * most + 1e-6);
    return reading;
  }

  std::uint64_t range_uj;
  std::uint64_t raw_uj = 0;
  CounterUnwrap unwrap;
  Clock::SteadyTime last{};
  int gone = 0;
};

class History {
 public:
  explicit History(std::uint64_t seed)
      : random_(seed),
        account_(AccountOptions{
            .keep_ended = std::chrono::seconds(random_.pick(0, 120)),
            .idle_watts = {
                random_.chance(0.2) ? std::optional(random_.uniform(0, 300)) : std::nullopt,
                {},
                random_.chance(0.2) ? std::optional(random_.uniform(0, 300)) : std::nullopt,
                {},
                random_.chance(0.2) ? std::optional(random_.uniform(0, 300)) : std::nullopt}}) {
    const int packages = random_.pick(0, 2);
    for (int i = 0; i < packages; ++i) {
      add_counter(Domain::kPackage, "package-" + std::to_string(i));
    }
    if (random_.chance(0.5)) {
      add_counter(Domain::kDram, "dram");
    }
    if (random_.chance(0.3)) {
      add_counter(Domain::kGpu, "gpu");
    }
    if (random_.chance(0.6)) {
      wall_.emplace(SourceInfo{.name = "wall", .domain = Domain::kNode, .rank = 1});
      account_.add_source(wall_->source());
    }
    account_.add_source({.name = "power-model",
                         .domain = Domain::kNode,
                         .method = Method::kModelled,
                         .rank = 1000});
    snapshots_.resize(2);
    gpus_ = random_.chance(0.6) ? random_.pick(1, 8) : 0;
  }

  void run() {
    const int samples = random_.pick(15, 30);
    for (int i = 0; i < samples && !::testing::Test::HasFailure(); ++i) {
      step();
      check();
    }
  }

 private:
  void add_counter(Domain domain, std::string name) {
    const auto range = static_cast<std::uint64_t>(random_.uniform(1e8, 3e9));
    counters_.emplace_back(
        range, domain, random_.chance(0.5) ? std::optional(random_.uniform(0, 400)) : std::nullopt);
    account_.add_source({.name = std::move(name),
                         .domain = domain,
                         .socket = random_.chance(0.8) ? random_.pick(0, 2) : -1});
  }

  /// Uses of CPUs on sockets that do not go with the use of the node or of the units.
  void use_cpus(NodeUse& use) {
    cpus_.resize(static_cast<std::size_t>(random_.pick(1, 16)));
    sockets_.assign(static_cast<std::size_t>(socket_count_), SocketUse{});
    for (CpuUse& cpu : cpus_) {
      cpu.socket = random_.pick(-1, socket_count_ - 1);
      cpu.busy = random_.uniform(0, 1);
      cpu.cores = cpu.busy * random_.uniform(0.5, 1);
      if (cpu.socket >= 0) {
        SocketUse& socket = sockets_[static_cast<std::size_t>(cpu.socket)];
        socket.cpus += 1;
        socket.busy += cpu.busy;
        socket.cores += cpu.cores;
        socket.cores_max += random_.uniform(0.5, 1);
      }
    }
    use.cpus = cpus_;
    use.sockets = sockets_;
  }

  void step() {
    static constexpr std::array kIntervals{0.0, 0.05, 1.0, 1.0, 1.0, 1.0, 7.0, 65.0};
    const double seconds = kIntervals.at(static_cast<std::size_t>(random_.pick(0, 7)));
    now_ += std::chrono::duration_cast<Clock::SteadyTime::duration>(
        std::chrono::duration<double>(seconds));
    wall_now_ += std::chrono::duration_cast<Clock::SystemTime::duration>(
        std::chrono::duration<double>(random_.chance(0.05) ? random_.uniform(-1e4, 1e4) : seconds));
    if (random_.chance(0.05)) {
      cpus_online_ = random_.pick(1, 128);  // hot-plug
    }
    const double busy = move_units(seconds);
    if (random_.chance(0.03)) {
      suspended_ += std::chrono::seconds(random_.pick(1, 36'000));
    }

    std::vector<std::optional<Reading>> readings;
    readings.reserve(counters_.size() + 2);
    const double watts = random_.uniform(20, 900);
    for (SimulatedCounter& counter : counters_) {
      readings.push_back(
          counter.read(random_, watts * random_.uniform(0, 1) * seconds, now_, suspended_));
    }
    if (wall_) {
      if (random_.chance(0.2)) {  // late: a value of some time ago
        wall_->publish({.watts = std::round(watts * random_.uniform(0.5, 2.5)),
                        .time = now_ - std::chrono::milliseconds(random_.pick(0, 5000))});
      }
      const auto reading = wall_->read({.now = now_, .utilisation = {}});
      readings.push_back(reading ? std::optional(*reading) : std::nullopt);
    }
    readings.push_back(
        random_.chance(0.95)
            ? std::optional(Reading{.joules = watts * seconds, .fresh = now_, .idle_watts = 50.0})
            : std::nullopt);

    std::vector<ManagerUnits> managers;
    for (std::size_t i = 0; i < snapshots_.size(); ++i) {
      // Discovery fails or returns the previous snapshot.
      const bool failed = random_.chance(0.05);
      managers.push_back(
          {.manager = i == 0 ? "slurm" : "cgroup", .snapshot = failed ? nullptr : &snapshots_[i]});
    }
    NodeUse use;
    if (random_.chance(0.95) && seconds > 0) {
      use.busy_cpus = busy / seconds * random_.uniform(0.9, 1.5);
    }
    if (random_.chance(0.97)) {
      use.cpus_online = cpus_online_;
    }
    if (random_.chance(0.97)) {
      use.memory_total_bytes = 64e9;
    }
    if (random_.chance(0.02)) {
      socket_count_ = random_.pick(1, 3);
    }
    if (random_.chance(0.8)) {
      use_cpus(use);
    }
    const auto devices = move_devices(seconds);
    account_.advance({.time = now_,
                      .readings = readings,
                      .node = use,
                      .managers = managers,
                      .devices = devices});
    if (random_.chance(0.3)) {
      account_.mark_scraped();
    }
  }

  /// GPUs that come and go and are only read in some intervals. Any number of units hold them,
  /// among them units that do not exist, with shares that need not add up.
  std::vector<DeviceSample> move_devices(double seconds) {
    std::vector<DeviceSample> devices;
    for (int i = 0; i < gpus_; ++i) {
      if (random_.chance(0.1)) {
        continue;  // lost
      }
      DeviceSample device;
      device.source = {.name = "GPU-" + std::to_string(i), .domain = Domain::kGpu};
      device.seconds = random_.chance(0.2) ? 0 : seconds * random_.uniform(0, 2);
      device.joules = device.seconds * random_.uniform(random_.chance(0.02) ? -100 : 0, 700);
      device.fresh = now_;
      if (random_.chance(0.8)) {
        device.utilisation = random_.uniform(0, 1);
      }
      device.total_use = random_.chance(0.2) ? 0 : random_.uniform(0, 2);
      for (int holders = random_.pick(0, 4); holders > 0; --holders) {
        device.holders.push_back({.manager = random_.chance(0.7) ? "slurm" : "cgroup",
                                  .cgrouphostname = "",
                                  .uuid = std::to_string(random_.pick(1, kMaxUuid)),
                                  .alloc = random_.uniform(random_.chance(0.05) ? -1 : 0, 1),
                                  .use = random_.chance(0.3) ? 0 : random_.uniform(0, 1)});
      }
      devices.push_back(std::move(device));
    }
    return devices;
  }

  /// Lets units start, work, end and come back. Returns the CPU-seconds they used.
  double move_units(double seconds) {
    double busy = 0;
    for (UnitSnapshot& snapshot : snapshots_) {
      if (random_.chance(0.1)) {
        continue;  // a shared snapshot: nothing was read
      }
      snapshot.taken = now_;
      snapshot.wall = wall_now_;
      std::erase_if(snapshot.units, [&](const Unit& unit) {
        return unit.ended || random_.chance(0.05);  // gone without being reported as ended
      });
      while (random_.chance(0.3) && snapshot.units.size() < 12) {
        Unit unit;
        unit.uuid = std::to_string(random_.pick(1, kMaxUuid));  // some come back
        const bool taken = std::any_of(snapshot.units.begin(), snapshot.units.end(),
                                       [&](const Unit& other) { return other.uuid == unit.uuid; });
        if (taken) {
          continue;
        }
        unit.stats.reserved_cpus =
            random_.chance(0.3) ? 0 : random_.pick(1, 128);  // over-allocation
        if (random_.chance(0.6)) {
          unit.stats.cpu_set = std::make_shared<const std::vector<int>>(
              std::vector{random_.pick(-1, 8), random_.pick(9, 20)});
        }
        unit.stats.memory_total_bytes = random_.chance(0.3) ? 0 : random_.uniform(0, 64e9);
        unit.started = random_.chance(0.3) ? Clock::SystemTime{} : wall_now_;
        snapshot.units.push_back(std::move(unit));
      }
      for (Unit& unit : snapshot.units) {
        const double used = random_.chance(0.3) ? 0 : random_.uniform(0, 4) * seconds;
        busy += used;
        unit.stats.cpu_user_seconds =
            random_.chance(0.02) ? 0 : unit.stats.cpu_user_seconds + used;  // recreated cgroup
        unit.stats.memory_used_bytes = static_cast<std::uint64_t>(random_.uniform(0, 40e9));
        unit.stats.memory_inactive_file_bytes =
            static_cast<std::uint64_t>(random_.uniform(0, 30e9));
        unit.ended = random_.chance(0.05);
        unit.last_seen = wall_now_;
      }
    }
    return busy;
  }

  using ByDomain = std::array<double, kDomainCount>;

  static void rises(double& last, double value, std::string_view what) {
    ASSERT_TRUE(std::isfinite(value)) << what;
    ASSERT_GE(value, 0) << what;
    ASSERT_GE(value, last) << what << " fell";
    last = value;
  }

  void check() {
    std::array<std::array<bool, kMaxUuid + 1>, 2> shown{};
    for (const Domain domain : kDomains) {
      const std::size_t d = index(domain);
      double units = 0;
      for (const auto& unit : account_.units()) {
        const std::size_t manager = unit->manager == "slurm" ? 0 : 1;
        const auto uuid = static_cast<std::size_t>(std::stoi(unit->uuid));
        units += unit->joules(domain);
        rises(last_units_.at(manager).at(uuid).at(d), unit->joules(domain), "unit");
        rises(last_idle_.at(manager).at(uuid).at(d), unit->idle_joules(domain), "idle");
        ASSERT_LE(unit->idle_joules(domain), unit->joules(domain));
        ASSERT_LE(unit->unused_idle_joules(domain), unit->idle_joules(domain));
        shown.at(manager).at(uuid) = true;
      }
      const double node = account_.node_joules(domain);
      const double sum = units + account_.ended_joules(domain) + account_.system_joules(domain) +
                         account_.unallocated_joules(domain);
      ASSERT_LE(std::abs(sum - node), 1e-6 * std::max(node, 1e-3)) << to_string(domain);
      rises(last_node_.at(d), node, "node");
      rises(last_system_.at(d), account_.system_joules(domain), "system");
      rises(last_unallocated_.at(d), account_.unallocated_joules(domain), "unallocated");
      rises(last_ended_.at(d), account_.ended_joules(domain), "ended");
    }
    // A unit that was dropped may start again at 0.
    for (std::size_t manager = 0; manager < shown.size(); ++manager) {
      for (std::size_t uuid = 0; uuid <= kMaxUuid; ++uuid) {
        if (!shown.at(manager).at(uuid)) {
          last_units_.at(manager).at(uuid) = {};
          last_idle_.at(manager).at(uuid) = {};
        }
      }
    }
  }

  Random random_;
  Account account_;
  std::vector<SimulatedCounter> counters_;
  std::optional<PublishedPowerMeter> wall_;
  std::vector<UnitSnapshot> snapshots_;
  double cpus_online_ = 64;
  int socket_count_ = random_.pick(1, 3);
  std::vector<CpuUse> cpus_;
  std::vector<SocketUse> sockets_;
  int gpus_ = 0;
  Clock::SteadyTime now_{std::chrono::seconds(1000)};
  std::chrono::nanoseconds suspended_{};
  Clock::SystemTime wall_now_{std::chrono::seconds(1'767'225'600)};
  std::array<std::array<ByDomain, kMaxUuid + 1>, 2> last_units_{};
  std::array<std::array<ByDomain, kMaxUuid + 1>, 2> last_idle_{};
  ByDomain last_node_{};
  ByDomain last_system_{};
  ByDomain last_unallocated_{};
  ByDomain last_ended_{};
};

TEST(AccountProperty, ConservesEnergyInRandomHistories) {
  for (std::uint64_t seed = 1; seed <= testing::histories(2000); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History(seed).run();
    if (HasFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace ceems::exporter::energy
