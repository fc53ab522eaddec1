// Measures how long the gate of ceems_lb takes to decide about a request with a PromQL query of 1
// KB: parsing it, looking up owners in memory and printing it.
//
//   decision [COUNT]
//
// COUNT is 100000 by default. That keeps the first 500 queries, for which the gate allocates
// memory, out of p99. A busy machine interrupts about one decision in some hundred. The last row
// shows what the machine does to work of the same length that needs no memory. The row "least of"
// shows what the gate alone needs: each query is decided in several rounds, each with a new gate,
// and the shortest of its times counts.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "gate/gate.h"
#include "net/http.h"

namespace {

using ceems::gate::Gate;

constexpr std::size_t kRounds = 20;

class OwnersOfEverything final : public ceems::gate::Owners {
 public:
  ceems::Result<bool> is_admin(const std::string& /*user*/) override { return false; }
  ceems::Result<bool> may_see(const std::string& /*user*/,
                              const std::string& /*cluster*/,
                              const ceems::gate::UnitSet& /*units*/) override {
    return true;
  }
  ceems::Result<ceems::gate::UnitSet> units_of(const std::string& /*user*/,
                                               const std::string& /*cluster*/,
                                               std::size_t /*most*/) override {
    return ceems::gate::UnitSet{};
  }
  ceems::Result<ceems::gate::SharedIds> shared_ids(const std::string& /*user*/,
                                                   const std::string& /*cluster*/,
                                                   const ceems::gate::UnitSet& /*units*/) override {
    return ceems::gate::SharedIds{};
  }
};

/// Nine selectors with two matchers each, 1 KB, like the panel of a dashboard.
std::string dashboard_query(std::string_view instances) {
  std::string query;
  for (int i = 0; i < 9; ++i) {
    query += query.empty() ? "" : " + ";
    query += fmt::format(
        R"(avg by (instance) (rate(ceems_compute_unit_cpu_user_seconds_total{{uuid=~"1479763|1481508",instance=~"{}"}}[5m])))",
        instances);
  }
  return query;
}

/// A gate that has not decided any request yet.
class FreshGate {
 public:
  FreshGate() : owners_(cached()), gate_(ceems::gate::BackendType::kTsdb, rules(), owners_.get()) {}

  [[nodiscard]] bool decide(const std::string& target) const {
    return gate_.decide(received(target), headers_).has_value();
  }
  [[nodiscard]] bool decide_inline(const std::string& target) const {
    return gate_.decide_inline(received(target), headers_).has_value();
  }

 private:
  std::unique_ptr<ceems::gate::Owners> cached() {
    return ceems::gate::cached_owners(everybody_, ceems::real_clock(),
                                      {.age = std::chrono::hours(1)});
  }
  static ceems::gate::GateRules rules() {
    ceems::gate::GateRules rules;
    rules.clusters = {"c0"};
    return rules;
  }
  static ceems::gate::ParsedRequest received(const std::string& target) {
    return ceems::gate::ParsedRequest({.method = "GET", .target = target});
  }

  OwnersOfEverything everybody_;
  std::unique_ptr<ceems::gate::Owners> owners_;
  Gate gate_;
  const ceems::net::Headers headers_ = {
      {"Host", "lb"}, {"X-Grafana-User", "alice"}, {"X-Ceems-Cluster-Id", "c0"}};
};

/// In microseconds.
template <typename Work>
double time_of(const Work& work) {
  using std::chrono::steady_clock;
  const auto start = steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(steady_clock::now() - start).count();
}

template <typename MakeTarget, typename Decide>
std::vector<double> times_of(std::size_t count,
                             const MakeTarget& make_target,
                             const Decide& decide) {
  std::vector<double> times(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string target = make_target(i);
    bool passes = false;
    times[i] = time_of([&] { passes = decide(target); });
    if (!passes) {
      fmt::print(stderr, "decision: the request does not pass\n");
      std::exit(1);  // NOLINT(concurrency-mt-unsafe)
    }
  }
  return times;
}

/// The shortest time for each query, always with a gate that has not seen it.
template <typename MakeTarget>
std::vector<double> min_times_of(std::size_t count, const MakeTarget& make_target) {
  std::vector<double> least(count, std::numeric_limits<double>::infinity());
  for (std::size_t round = 0; round < kRounds; ++round) {
    const FreshGate gate;
    const auto times = times_of(count, make_target,
                                [&](const std::string& target) { return gate.decide(target); });
    std::ranges::transform(least, times, least.begin(),
                           [](double one, double other) { return std::min(one, other); });
  }
  return least;
}

/// Prints a row of the table and returns the median.
double print_row(std::string_view name, std::vector<double> times) {
  std::ranges::sort(times);
  const auto at = [&](double share) {
    return times.at(static_cast<std::size_t>(share * static_cast<double>(times.size() - 1)));
  };
  fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} |\n", name, at(0.5), at(0.99), at(0.999));
  return at(0.5);
}

/// Arithmetic without memory access. Each step depends on the one before.
void compute(std::size_t steps) {
  volatile std::uint64_t seen = 0;
  std::uint64_t value = steps;
  for (std::size_t i = 0; i < steps; ++i) {
    value = value * 6364136223846793005 + 1442695040888963407;
  }
  seen = value;
  static_cast<void>(seen);
}

/// Times of arithmetic that takes `microseconds` if nothing interrupts it.
std::vector<double> times_of_machine(std::size_t count, double microseconds) {
  constexpr std::size_t kSteps = 10000;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 1000; ++i) {
    least = std::min(least, time_of([] { compute(kSteps); }));
  }
  const auto steps = static_cast<std::size_t>(microseconds / least * kSteps);
  std::vector<double> times(count);
  std::ranges::generate(times, [&] { return time_of([&] { compute(steps); }); });
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100000;
  if (count < kRounds) {
    fmt::print(stderr, "usage: decision [COUNT], {} or more\n", kRounds);
    return 2;
  }
  const std::string query = dashboard_query("node-[0-9]+");
  const auto target_of = [](const std::string& text) {
    return "/api/v1/query?query=" + ceems::net::url_encode(text) + "&time=1700000000";
  };
  const std::string same = target_of(query);
  const auto known = [&](std::size_t /*number*/) { return same; };
  const auto other = [&](std::size_t number) {
    return target_of(query + " > " + std::to_string(number));
  };
  const auto other_pattern = [&](std::size_t number) {
    return target_of(dashboard_query(fmt::format("node-{}[0-9]", number)));
  };
  const FreshGate gate;
  const auto thorough = [&](const std::string& target) { return gate.decide(target); };
  const auto decide_inline = [&](const std::string& target) { return gate.decide_inline(target); };
  fmt::print("Query of {} bytes, µs:\n\n| | p50 | p99 | p99.9 |\n|---|---|---|---|\n",
             query.size());
  print_row("a query seen before", times_of(count, known, thorough));
  print_row("the same, inline", times_of(count, known, decide_inline));
  const double usual = print_row("another one each time", times_of(count, other, thorough));
  print_row(fmt::format("the same, least of {} rounds", kRounds),
            min_times_of(count / kRounds, other));
  print_row("another one with another pattern", times_of(count, other_pattern, thorough));
  print_row("the machine alone", times_of_machine(count, usual));
  return 0;
}
