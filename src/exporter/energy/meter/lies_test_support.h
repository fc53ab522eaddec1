// The ways in which a meter is known to answer nonsense.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ceems::exporter::energy {

inline constexpr int kTick = 4;     // seconds
inline constexpr int kEnd = 1'200;  // seconds
/// Times kEnd: it takes minutes to know that a power stands still.
inline constexpr int kLong = 4;
inline constexpr int kBegin = 400;  // of most lies

/// What a lying counter shows at `second`, of the truth in microjoules; nothing: an error.
using CounterLie = std::function<std::optional<std::uint64_t>(
    int second, std::uint64_t truth, std::uint64_t twin)>;
/// What a lying power meter shows at `second`, of the truth in watts; nothing: no answer.
using PowerLie = std::function<std::optional<double>(int second, double truth)>;

/// A way to lie.
template <class Lie>
struct Named {
  std::string name;
  Lie lie;
  bool always = false;  // it never told the truth, so it counts as if it were not there
};

/// A small generator, so that every run is the same.
inline double noise(int second, int salt) {
  auto x = static_cast<std::uint64_t>(second) * 0x9E3779B97F4A7C15U +
           static_cast<std::uint64_t>(salt) * 0xBF58476D1CE4E5B9U;
  x ^= x >> 31U;
  x *= 0x94D049BB133111EBU;
  x ^= x >> 29U;
  return static_cast<double>(x >> 11U) / static_cast<double>(std::uint64_t{1} << 53U);
}

inline std::vector<Named<CounterLie>> counter_lies() {
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

inline std::vector<Named<PowerLie>> power_lies() {
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

}  // namespace ceems::exporter::energy
