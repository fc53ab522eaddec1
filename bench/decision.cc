// How long the gate of ceems_lb takes to decide about a request with a PromQL query of 1 KB:
// parsing, owners from memory, printing.
//
//   decision [COUNT]

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "gate/gate.h"
#include "net/http.h"

namespace {

using ceems::gate::Gate;

class EverybodysOwners final : public ceems::gate::Owners {
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

/// Nine selectors with three matchers each, 1 KB, as a panel of a dashboard has it.
std::string dashboard_query() {
  constexpr std::string_view kPart =
      R"(avg by (instance) (rate(ceems_compute_unit_cpu_user_seconds_total{uuid=~"1479763|1481508",instance=~"node-[0-9]+"}[5m])))";
  std::string query;
  for (int i = 0; i < 9; ++i) {
    query += query.empty() ? "" : " + ";
    query += kPart;
  }
  return query;
}

template <typename MakeTarget, typename Decide>
void measure(const char* name,
             std::size_t count,
             const MakeTarget& make_target,
             const Decide& decide) {
  using std::chrono::steady_clock;
  std::vector<double> times;
  times.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string target = make_target(i);
    const auto start = steady_clock::now();
    if (!decide(target)) {
      fmt::print(stderr, "decision: the request does not pass\n");
      std::exit(1);  // NOLINT(concurrency-mt-unsafe)
    }
    times.push_back(std::chrono::duration<double, std::micro>(steady_clock::now() - start).count());
  }
  std::ranges::sort(times);
  const auto at = [&](double share) {
    return times.at(static_cast<std::size_t>(share * static_cast<double>(count - 1)));
  };
  fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} |\n", name, at(0.5), at(0.99), at(0.999));
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100000;
  EverybodysOwners everybody;
  const auto owners =
      ceems::gate::cached_owners(everybody, ceems::real_clock(), {.age = std::chrono::hours(1)});
  ceems::gate::GateRules rules;
  rules.clusters = {"c0"};
  const Gate gate(ceems::gate::BackendType::kTsdb, rules, owners.get());
  const std::string query = dashboard_query();
  const ceems::net::Headers headers = {
      {"Host", "lb"}, {"X-Grafana-User", "alice"}, {"X-Ceems-Cluster-Id", "c0"}};
  const auto raw = [](const std::string& target) {
    return ceems::gate::RawRequest{
        .method = "GET", .target = target, .content_type = {}, .content_encoding = {}, .body = {}};
  };
  const auto thorough = [&](const std::string& target) {
    return gate.decide(raw(target), headers).has_value();
  };
  const auto at_once = [&](const std::string& target) {
    return gate.decide_at_once(raw(target), headers).has_value();
  };
  const auto target_of = [](const std::string& text) {
    return "/api/v1/query?query=" + ceems::net::url_encode(text) + "&time=1700000000";
  };
  const std::string same = target_of(query);
  const auto known = [&](std::size_t /*number*/) { return same; };
  const auto other = [&](std::size_t number) {
    return target_of(query + " > " + std::to_string(number));
  };
  fmt::print("Query of {} bytes, µs:\n\n| | p50 | p99 | p99.9 |\n|---|---|---|---|\n",
             query.size());
  measure("a query seen before", count, known, thorough);
  measure("the same, at once", count, known, at_once);
  measure("another one each time", count, other, thorough);
  return 0;
}
