// Meters that lie: every way in which a meter is known to answer nonsense, with every kind of
// meter. None may move the energy of a job by more than 5 % of what it gets from the same meters
// when they tell the truth.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/energy/account/account.h"
#include "exporter/energy/meter/counter_unwrap.h"
#include "exporter/energy/meter/held_power.h"
#include "exporter/energy/meter/power_model.h"
#include "exporter/energy/meter/reading_gate.h"

namespace ceems::exporter::energy {
namespace {

constexpr int kTick = 4;       // seconds
constexpr int kEnd = 1'200;    // seconds
constexpr int kLong = 4;       // times; it takes minutes to know that a power stands still
constexpr int kBegin = 400;    // of most lies
constexpr double kCores = 16;  // of each of two sockets
constexpr double kMaxPart = 0.05;
// Where a BMC is all there is, it takes minutes to know that it stands still, and what the account
// learns meanwhile stays: that jobs draw power without working.
constexpr double kMaxAlone = 0.3;
constexpr double kMaxSpikes = 0.08;  // the first two are believed

/// What a lying counter shows at `second`, of the truth in microjoules; nothing: an error.
using CounterLie = std::function<std::optional<std::uint64_t>(
    int second, std::uint64_t truth, std::uint64_t twin)>;
/// What a lying power meter shows at `second`, of the truth in watts; nothing: no answer.
using PowerLie = std::function<std::optional<double>(int second, double truth)>;

template <class Lie>
struct Named {
  std::string name;
  Lie lie;
  bool always = false;  // it never told the truth, so it counts as if it were not there
};

/// A small generator, so that every run is the same.
double noise(int second, int salt) {
  auto x = static_cast<std::uint64_t>(second) * 0x9E3779B97F4A7C15U +
           static_cast<std::uint64_t>(salt) * 0xBF58476D1CE4E5B9U;
  x ^= x >> 31U;
  x *= 0x94D049BB133111EBU;
  x ^= x >> 29U;
  return static_cast<double>(x >> 11U) / static_cast<double>(std::uint64_t{1} << 53U);
}

std::vector<Named<CounterLie>> counter_lies() {
  using U = std::uint64_t;
  using Value = std::optional<U>;
  std::vector<Named<CounterLie>> lies;
  const auto add = [&lies](std::string name, CounterLie lie, bool always = false) {
    lies.push_back({std::move(name), std::move(lie), always});
  };
  /// Shows `value` in [from, to).
  const auto shows = [](int from, int to, Value value) -> CounterLie {
    return [=](int t, U truth, U) { return t >= from && t < to ? value : Value(truth); };
  };
  /// Stands still in [from, to), and goes on from there or, if not `behind`, shows the truth again.
  const auto stands = [](int from, int to, bool behind) -> CounterLie {
    return [=, at = U{0}, lost = U{0}](int t, U truth, U) mutable -> Value {
      if (t < from) {
        at = truth;
      } else if (t < to) {
        lost = behind ? truth - at : 0;
        return at;
      }
      return truth - lost;
    };
  };
  constexpr U kAll64 = std::numeric_limits<U>::max();
  constexpr U kAll63 = kAll64 >> 1U;
  constexpr U kAll32 = std::numeric_limits<std::uint32_t>::max();
  constexpr int kOnce = kBegin + kTick;
  for (const auto& [name, value] : {std::pair("64 ones", kAll64), std::pair("63 ones", kAll63),
                                    std::pair("32 ones", kAll32), std::pair("zero", U{0})}) {
    add(std::string(name) + ", once", shows(kBegin, kOnce, value));
    add(std::string(name) + ", for a minute", shows(kBegin, kBegin + 60, value));
    add(std::string(name) + ", for ever", shows(kBegin, kEnd, value));
    add(std::string(name) + ", always", shows(0, kEnd, value), true);
  }
  add("no value, once", shows(kBegin, kOnce, {}));
  add("no value, for 20 s", shows(kBegin, kBegin + 20, {}));
  add("no value, for two minutes", shows(kBegin, kBegin + 120, {}));
  add("no value, for ever", shows(kBegin, kEnd, {}));
  add("no value, always", shows(0, kEnd, {}), true);
  add("still for 4 s", stands(kBegin, kBegin + 4, false));
  add("still for a minute", stands(kBegin, kBegin + 60, false));
  add("still for five minutes", stands(kBegin, kBegin + 300, false));
  add("still for five minutes, then behind", stands(kBegin, kBegin + 300, true));
  add("still for ever", stands(kBegin, kEnd, false));
  add("still always", [](int, U, U) { return Value(123'456'789); }, true);
  add("a jump of 1 MJ",
      [](int t, U truth, U) { return Value(truth + (t >= kBegin ? U{1'000'000'000'000} : U{0})); });
  add("a jump of 20 kJ each minute", [](int t, U truth, U) {
    return Value(truth + static_cast<U>(std::max(0, t - kBegin) / 60) * U{20'000'000'000});
  });
  add("starts again", [start = U{0}](int t, U truth, U) mutable {
    start = t == kBegin ? truth : start;
    return Value(t >= kBegin ? truth - start : truth);
  });
  add("starts again each minute", [start = U{0}](int t, U truth, U) mutable {
    start = t >= kBegin && t % 60 == 0 ? truth : start;
    return Value(truth - start);
  });
  add("wraps at 32 bits", [](int, U truth, U) { return Value(truth % (U{1} << 32U)); });
  add("in nanojoules", [](int, U truth, U) { return Value(truth * 1'000); }, true);
  add(
      "noise of 64 bits", [](int t, U, U) { return Value(static_cast<U>(noise(t, 1) * 1.8e19)); },
      true);
  add("noise of 64 bits later", [](int t, U truth, U) {
    return Value(t >= kBegin ? static_cast<U>(noise(t, 1) * 1.8e19) : truth);
  });
  add("back and forth", [](int t, U truth, U) {
    return Value(t >= kBegin && t % 20 == 0 ? truth - 300'000'000 : truth);
  });
  add("updated each 8 s", [at = U{0}](int t, U truth, U) mutable {
    at = t % (2 * kTick) == 0 ? truth : at;
    return Value(at);
  });
  add("every other value missing",
      [](int t, U truth, U) { return t % (2 * kTick) == 0 ? Value(truth) : Value(); });
  add("every other value all ones",
      [=](int t, U truth, U) { return Value(t % (2 * kTick) == 0 ? truth : kAll64); });
  add("comes and goes each 40 s",
      [](int t, U truth, U) { return t / 40 % 2 == 0 || t < kBegin ? Value(truth) : Value(); });
  add("shows another counter", [](int, U, U twin) { return Value(twin); }, true);
  return lies;
}

std::vector<Named<PowerLie>> power_lies() {
  using Value = std::optional<double>;
  std::vector<Named<PowerLie>> lies;
  const auto add = [&lies](std::string name, PowerLie lie, bool always = false) {
    lies.push_back({std::move(name), std::move(lie), always});
  };
  const auto shows = [](int from, int to, Value value) -> PowerLie {
    return [=](int t, double truth) { return t >= from && t < to ? value : Value(truth); };
  };
  const std::array<std::pair<std::string, double>, 14> values{
      {{"65535 W", 65'535},
       {"32767 W", 32'767},
       {"6553.5 W", 6'553.5},
       {"4294967.295 W", 4'294'967.295},
       {"4294.967295 W", 4'294.967295},
       {"2147.483647 W", 2'147.483647},
       {"4294967295 W", 4'294'967'295},
       {"no number", std::numeric_limits<double>::quiet_NaN()},
       {"infinite", std::numeric_limits<double>::infinity()},
       {"-1 W", -1},
       {"0 W", 0},
       {"1 W", 1},
       {"9 kW", 9'000},
       {"1e9 W", 1e9}}};
  for (const auto& [name, value] : values) {
    add(name + ", once", shows(kBegin, kBegin + 12, value));
    add(name + ", for ever", shows(kBegin, kEnd, value));
    add(name + ", always", shows(0, kEnd, value), true);
  }
  add("no answer for a minute", shows(kBegin, kBegin + 60, {}));
  add("no answer for ever", shows(kBegin, kEnd, {}));
  add("no answer always", shows(0, kEnd, {}), true);
  const auto stands = [](int from, int to) -> PowerLie {
    return [=, at = 0.0](int t, double truth) mutable -> Value {
      at = t <= from ? truth : at;
      return t >= from && t < to ? at : truth;
    };
  };
  add("still for ever", stands(kBegin, kLong * kEnd));
  add("still for five minutes", stands(kBegin, kBegin + 300));
  add("still always", [](int, double) { return Value(333); }, true);
  add("in milliwatts", [](int, double truth) { return Value(truth * 1e3); }, true);
  add("in milliwatts later",
      [](int t, double truth) { return Value(t >= kBegin ? truth * 1e3 : truth); });
  add("in kilowatts", [](int, double truth) { return Value(truth * 1e-3); }, true);
  add("in kilowatts later",
      [](int t, double truth) { return Value(t >= kBegin ? truth * 1e-3 : truth); });
  add("a spike of three times each minute",
      [](int t, double truth) { return Value(t % 60 == 0 ? 3 * truth : truth); });
  add("a dip to a fifth each minute",
      [](int t, double truth) { return Value(t % 60 == 0 ? truth / 5 : truth); });
  add("every other 65535",
      [](int t, double truth) { return Value(t / 12 % 2 == 0 ? truth : 65'535); });
  add("noise up to 1 MW", [](int t, double) { return Value(10'000 + noise(t, 2) * 1e6); }, true);
  return lies;
}

/// A counter in a file.
class LyingCounter final : public EnergyMeter {
 public:
  LyingCounter(SourceInfo info, const double& joules, const double& twin)
      : info_(std::move(info)), joules_(joules), twin_(twin) {}
  [[nodiscard]] const SourceInfo& source() const override { return info_; }
  Result<Reading> read(const MeterContext& context) override {
    const auto uj = [](double joules) { return static_cast<std::uint64_t>(1e9 + joules * 1e6); };
    const auto second = static_cast<int>(
        std::chrono::duration_cast<std::chrono::seconds>(context.now.time_since_epoch()).count());
    const std::optional<std::uint64_t> raw =
        lie ? lie(second - 1'000, uj(joules_), uj(twin_)) : std::optional(uj(joules_));
    if (!raw) {
      counter_.miss(context, info_);
      return fail(ErrorCode::kUnavailable, "no value");
    }
    return counter_.advance(*raw, context, info_);
  }
  CounterLie lie;

 private:
  SourceInfo info_;
  const double& joules_;
  const double& twin_;
  MeteredCounter counter_{262'143'328'850, info_.domain == Domain::kPackage
                                               ? power_bound(info_.domain, 205)
                                               : power_bound(info_.domain)};
};

/// Two sockets with a job each, one of which changes its load, and the meters of a kind.
class LyingNode {
 public:
  enum class Kind { kPackage, kDie, kDram, kPsys, kPower, kBmc, kBmcAlone };
  LyingNode(Kind kind, const CounterLie& counter, const PowerLie& power, bool present = true)
      : power_lie_(power), period_(kind == Kind::kPower ? kTick : 12) {
    if (kind != Kind::kBmcAlone) {
      for (int socket = 0; socket < 2; ++socket) {
        add_socket(socket, kind, counter, present);
      }
    }
    if (kind == Kind::kPsys && present) {
      add_counter({.name = "psys", .domain = Domain::kNode, .rank = kPsysRank}, node_joules_,
                  package_joules_[0], counter);
    }
    if (kind >= Kind::kPower && present) {
      bmc_ = std::make_shared<PublishedPowerMeter>(
          SourceInfo{.name = "bmc", .domain = Domain::kNode, .rank = kIpmiRank});
      meters_.push_back(bmc_);
    }
    meters_.push_back(
        std::make_shared<ModelMeter>(PowerModel{.idle_watts = 200, .full_watts = 600}));
    for (const auto& meter : meters_) {
      account_.add_source(meter->source());
    }
    gate_ =
        std::make_unique<ReadingGate>(meters_, NodeLimits{.idle_watts = 200, .full_watts = 600});
    readings_.resize(meters_.size());
    for (int i = 0; i < 2; ++i) {
      Unit& unit = snapshot_.units.emplace_back();
      unit.uuid = std::to_string(i);
      unit.stats.reserved_cpus = kCores;
      unit.stats.memory_total_bytes = 32e9;
      std::vector<int> cpus(static_cast<std::size_t>(kCores));
      for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu) {
        cpus[cpu] = static_cast<int>(cpu) + i * static_cast<int>(kCores);
      }
      unit.stats.cpu_set = std::make_shared<const std::vector<int>>(std::move(cpus));
      unit.started = Clock::SystemTime{std::chrono::seconds(1'767'225'000)};
    }
  }

  /// Joules of the two jobs at the end.
  std::array<double, 2> run(int times = 1) {
    for (int second = 0; second <= times * kEnd; second += kTick) {
      step(second);
    }
    std::array<double, 2> joules{};
    for (const auto& unit : account_.units()) {
      joules.at(unit->uuid == "0" ? 0 : 1) = unit->joules(Domain::kNode);
    }
    return joules;
  }
  [[nodiscard]] const std::array<double, 2>& true_joules() const { return true_joules_; }
  /// What was not believed, in words.
  [[nodiscard]] std::string doubts() const {
    std::string all;
    for (std::size_t i = 0; i < meters_.size(); ++i) {
      for (std::size_t doubt = 0; doubt < kDoubtCount; ++doubt) {
        if (const auto count = gate_->source(i).excluded(static_cast<Doubt>(doubt)); count > 0) {
          all += fmt::format("{} {} {}, ", meters_[i]->source().name,
                             to_string(static_cast<Doubt>(doubt)), count);
        }
      }
    }
    return all;
  }

 private:
  void add_counter(SourceInfo info,
                   const double& joules,
                   const double& twin,
                   const CounterLie& lie = {}) {
    auto meter = std::make_shared<LyingCounter>(std::move(info), joules, twin);
    meter->lie = lie;
    meters_.push_back(std::move(meter));
  }
  void add_socket(int socket, Kind kind, const CounterLie& lie, bool present) {
    const auto s = static_cast<std::size_t>(socket);
    const std::string number = std::to_string(socket);
    const bool liar = socket == 1;
    if (kind == Kind::kDie) {
      for (std::size_t die = 0; die < 2; ++die) {
        const bool lies = liar && die == 1;
        if (!lies || present) {
          add_counter({.name = "die-" + number + "-" + std::to_string(die),
                       .domain = Domain::kPackage,
                       .socket = socket},
                      die_joules_.at(s).at(die), die_joules_.at(s).at(1 - die),
                      lies ? lie : CounterLie{});
        }
      }
    } else if (!(kind == Kind::kPackage && liar && !present)) {
      add_counter({.name = "package-" + number, .domain = Domain::kPackage, .socket = socket},
                  package_joules_.at(s), package_joules_.at(1 - s),
                  kind == Kind::kPackage && liar ? lie : CounterLie{});
    }
    if (!(kind == Kind::kDram && liar && !present)) {
      add_counter({.name = "dram-" + number, .domain = Domain::kDram, .socket = socket},
                  dram_joules_.at(s), dram_joules_.at(1 - s),
                  kind == Kind::kDram && liar ? lie : CounterLie{});
    }
  }

  void step(int second) {
    const Clock::SteadyTime now{std::chrono::seconds(1'000 + second)};
    const double seconds = second - std::exchange(last_, second);
    const std::array<double, 2> busy{12, std::floor(noise(second / 90, 3) * 15) + 0.5};
    double parts = 0;
    for (std::size_t socket = 0; socket < 2; ++socket) {
      const double flicker = 1 + 0.01 * (noise(second, 10 + static_cast<int>(socket)) - 0.5);
      const double package = (60 + 9 * busy.at(socket)) * flicker;
      const double dram = (10 + busy.at(socket)) * flicker;
      package_joules_.at(socket) += package * seconds;
      die_joules_.at(socket)[0] += 0.48 * package * seconds;
      die_joules_.at(socket)[1] += 0.52 * package * seconds;
      dram_joules_.at(socket) += dram * seconds;
      parts += package + dram;
      sockets_.at(socket) = {
          .cpus = kCores, .busy = busy.at(socket), .cores = busy.at(socket), .cores_max = kCores};
      snapshot_.units[socket].stats.cpu_user_seconds += busy.at(socket) * seconds;
      snapshot_.units[socket].stats.memory_used_bytes = 16'000'000'000;
    }
    for (std::size_t cpu = 0; cpu < cpus_.size(); ++cpu) {
      const std::size_t socket = cpu < cpus_.size() / 2 ? 0 : 1;
      const double use = busy.at(socket) / kCores;
      cpus_.at(cpu) = {.socket = static_cast<int>(socket), .busy = use, .cores = use};
    }
    for (std::size_t socket = 0; socket < 2; ++socket) {
      true_joules_.at(socket) += (30 + 1.1 * (70 + 10 * busy.at(socket))) * seconds;
    }
    const double node = 60 + 1.1 * parts;
    node_joules_ += node * seconds;
    if (bmc_ && second % period_ == 0) {
      const auto watts = power_lie_ ? power_lie_(second, std::round(node)) : std::round(node);
      if (watts) {
        bmc_->publish({.watts = *watts, .time = now});
      }
    }
    read(now, (busy[0] + busy[1]) / (2 * kCores));
    snapshot_.taken = now;
    snapshot_.wall = Clock::SystemTime{std::chrono::seconds(1'767'225'600 + second)};
    const std::array managers{ManagerUnits{.manager = "slurm", .snapshot = &snapshot_}};
    account_.advance({.time = now,
                      .readings = readings_,
                      .node = {.busy_cpus = busy[0] + busy[1],
                               .cpus_online = 2 * kCores,
                               .memory_total_bytes = 64e9,
                               .cpus = cpus_,
                               .sockets = sockets_},
                      .managers = managers});
  }

  void read(Clock::SteadyTime now, double utilisation) {
    for (std::size_t i = 0; i < meters_.size(); ++i) {
      const auto reading =
          meters_[i]->read({.now = now, .utilisation = utilisation, .gate = &gate_->gate(i)});
      readings_[i] = reading ? std::optional(*reading) : std::nullopt;
    }
    gate_->judge(
        {.time = now, .utilisation = utilisation, .sockets = sockets_, .readings = readings_});
  }

  PowerLie power_lie_;
  int period_;
  int last_ = 0;
  Meters meters_;
  std::shared_ptr<PublishedPowerMeter> bmc_;
  std::unique_ptr<ReadingGate> gate_;
  Account account_{AccountOptions{}};
  UnitSnapshot snapshot_;
  std::vector<std::optional<Reading>> readings_;
  std::array<SocketUse, 2> sockets_{};
  std::array<CpuUse, 32> cpus_{};
  std::array<double, 2> package_joules_{};
  std::array<std::array<double, 2>, 2> die_joules_{};
  std::array<double, 2> dram_joules_{};
  double node_joules_ = 0;
  std::array<double, 2> true_joules_{};  // of each job
};

using Kind = LyingNode::Kind;

template <class Lie>
void expect_truth(Kind kind, const std::vector<Named<Lie>>& lies) {
  const auto make = [&](const Lie& lie, bool present = true) {
    if constexpr (std::is_same_v<Lie, CounterLie>) {
      return LyingNode(kind, lie, {}, present);
    } else {
      return LyingNode(kind, {}, lie, present);
    }
  };
  LyingNode honest = make({});
  const auto short_truth = honest.run();
  EXPECT_EQ(honest.doubts(), "");
  const auto long_truth = make({}).run(kLong);
  for (std::size_t job = 0; job < 2; ++job) {
    // Packages alone do not show what fans and losses take.
    EXPECT_GT(short_truth.at(job) / honest.true_joules().at(job), kind < Kind::kPsys ? 0.75 : 0.95);
    EXPECT_LT(short_truth.at(job) / honest.true_joules().at(job), 1.05);
  }
  const auto short_without = make({}, false).run();
  const auto long_without = make({}, false).run(kLong);
  for (const auto& [name, lie, always] : lies) {
    SCOPED_TRACE(name);
    const bool slow = kind >= Kind::kPower && name.starts_with("still");
    const bool part = kind < Kind::kPsys;
    const bool alone = kind == Kind::kBmcAlone;
    const double most = alone && slow                       ? kMaxAlone
                        : alone && name.ends_with("minute") ? kMaxSpikes
                                                            : kMaxPart;
    const bool mirror = kind == Kind::kDie && name == "shows another counter";
    ::testing::internal::CaptureStderr();
    LyingNode node = make(lie);
    const auto joules = node.run(slow ? kLong : 1);
    const auto truth = slow ? long_truth : short_truth;
    const auto without = slow ? long_without : short_without;
    const std::string log = ::testing::internal::GetCapturedStderr();
    for (std::size_t job = 0; job < 2; ++job) {
      const double expected = mirror || (always && !part) ? without.at(job) : truth.at(job);
      EXPECT_NEAR(joules.at(job) / expected, 1, most)
          << "job " << job << " " << node.doubts() << "\n"
          << log;
    }
  }
}

TEST(LyingMeters, OnePackageOfTwo) {
  expect_truth(Kind::kPackage, counter_lies());
}
TEST(LyingMeters, OneDieOfFour) {
  expect_truth(Kind::kDie, counter_lies());
}
TEST(LyingMeters, OneMemoryOfTwo) {
  expect_truth(Kind::kDram, counter_lies());
}
TEST(LyingMeters, CounterOfTheNode) {
  expect_truth(Kind::kPsys, counter_lies());
}
TEST(LyingMeters, PowerOfTheNode) {
  expect_truth(Kind::kPower, power_lies());
}
TEST(LyingMeters, PowerOfTheNodeByABmc) {
  expect_truth(Kind::kBmc, power_lies());
}
TEST(LyingMeters, PowerOfTheNodeWithoutOtherMeters) {
  expect_truth(Kind::kBmcAlone, power_lies());
}

}  // namespace
}  // namespace ceems::exporter::energy
