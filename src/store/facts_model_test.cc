// Random units and questions: what the database lists and adds up is what a naive model of it does.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "store/facts_test_support.h"

namespace ceems::store {
namespace {

using model::Metric;

/// A unit as the naive model knows it.
struct Known {
  std::string cluster, uuid, name, user, project, state, queue;
  std::int64_t started = 0, ended = 0;
  std::int64_t cpu = -1;
  std::int64_t energy = -1;

  [[nodiscard]] std::string id() const { return cluster + "/" + uuid; }
};
TEST_P(UnitFacts, ListsAreThoseOfANaiveModel) {
  std::mt19937 random(18);  // NOLINT: the same units each time
  const auto any = [&random](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  const Texts users{"ada", "bob", "eve", "Zoe"};
  const Texts projects{"fluids", "optics", ""};
  const Texts names{"train_7", "md_lig", "", "=cmd|' /C calc'!A0", "Run (2)", "\xC3\xA9t\xC3\xA9"};
  std::vector<Known> all;
  for (const std::string cluster : {"a", "b"}) {
    std::vector<model::Unit> units;
    for (int i = 0; i < 150; ++i) {
      const bool over = any(5) > 0;
      const std::int64_t end = kNow - any(200) * kMinute;
      model::Unit unit = job(std::to_string(100 + i), kNow - kDay, over ? end : 0);
      unit.name = names[static_cast<std::size_t>(any(6))];
      unit.username = users[static_cast<std::size_t>(any(4))];
      unit.project = projects[static_cast<std::size_t>(any(3))];
      unit.state = !over ? "RUNNING" : any(3) == 0 ? "FAILED" : "COMPLETED";
      unit.tags = any(2) == 0 ? R"({"partition":"gpu"})" : "{}";
      Known known{.cluster = cluster,
                  .uuid = unit.uuid,
                  .name = unit.name,
                  .user = unit.username,
                  .project = unit.project,
                  .state = unit.state,
                  .queue = unit.tags == "{}" ? "" : "gpu",
                  .started = unit.started_at_ts,
                  .ended = unit.ended_at_ts};
      if (any(4) > 0) {
        known.cpu = any(30) * 500;
        with(unit, Metric::kAvgCpuUsage, {{"global", static_cast<double>(known.cpu) / 100}});
      }
      if (any(4) > 0) {
        known.energy = any(20) * 250'000'000LL;
        with(unit, Metric::kTotalCpuEnergyUsageKwh,
             {{"total", static_cast<double>(known.energy) / 1e9}});
      }
      units.push_back(unit);
      all.push_back(known);
    }
    write(update(kNow - kDay, kNow, units, cluster));
  }

  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  for (int round = 0; round < 60; ++round) {
    FactListQuery query{.filter = everybodys()};
    FactFilter& filter = query.filter;
    filter.ended = TimeRange{kNow - any(200) * kMinute, kNow - any(60) * kMinute};
    filter.running = any(2) == 0;
    if (any(6) == 0) {
      filter.ended.reset();
    }
    const std::string one_user = users[static_cast<std::size_t>(any(4))];
    switch (any(5)) {
      case 0:
        filter.owners = {.everybody = false, .names = {one_user}};
        break;
      case 1:
        filter.owners = {.everybody = false,
                         .names = {one_user},
                         .led_projects = {{"a", "fluids"}, {"b", "optics"}}};
        break;
      case 2:
        filter.projects = {"fluids"};
        break;
      case 3:
        filter.users = {"ada", "Zoe"};
        break;
      default:
        break;
    }
    if (any(3) == 0) {
      filter.states = {"FAILED"};
      filter.state_running = any(2) == 0;
    }
    if (any(4) == 0) {
      filter.partitions = {"gpu"};
    }
    if (any(3) == 0) {
      filter.ranges = {{Fact::kCpu, 0, 4000}};
    }
    if (any(4) == 0) {
      filter.words = {any(2) == 0 ? "1" : "run", "a"};
    }
    if (any(6) == 0) {
      filter.clusters = {"b"};
    }
    if (any(8) == 0) {
      filter.names = {.everybody = false, .user = one_user, .led = {{"a", "fluids"}}};
    }
    const auto sorts = std::to_array(
        {Fact::kEnded, Fact::kKwh, Fact::kCpu, Fact::kName, Fact::kUser, Fact::kUuid});
    query.sort = sorts[static_cast<std::size_t>(any(6))];
    query.descending = any(2) == 0;

    const auto led = [](const std::vector<ClusterProject>& list, const Known& one) {
      return std::ranges::any_of(list, [&one](const ClusterProject& project) {
        return project.cluster_id == one.cluster && project.project == one.project;
      });
    };
    const auto has = [](const Texts& list, const std::string& text) {
      return list.empty() || std::ranges::find(list, text) != list.end();
    };
    const auto name_of = [&](const Known& one) {
      const bool seen =
          filter.names.everybody || one.user == filter.names.user || led(filter.names.led, one);
      return seen ? one.name : std::string();
    };
    const auto lower = [](std::string text) {
      std::ranges::transform(text, text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
      return text;
    };
    std::vector<Known> expected;
    for (const Known& one : all) {
      const bool owned =
          filter.owners.everybody ||
          std::ranges::find(filter.owners.names, one.user) != filter.owners.names.end() ||
          led(filter.owners.led_projects, one);
      const bool in_time = !filter.ended || (one.ended == 0 ? filter.running
                                                            : one.ended >= filter.ended->from_ms &&
                                                                  one.ended <= filter.ended->to_ms);
      const bool in_state = (filter.states.empty() && !filter.state_running) ||
                            (!filter.states.empty() && has(filter.states, one.state)) ||
                            (filter.state_running && one.ended == 0);
      const bool found = std::ranges::all_of(filter.words, [&](const std::string& word) {
        return one.uuid.starts_with(word) || lower(name_of(one)).contains(word) ||
               lower(one.user).contains(word) || lower(one.project).contains(word);
      });
      const bool in_range = filter.ranges.empty() || (one.cpu >= 0 && one.cpu <= 4000);
      if (owned && in_time && in_state && found && in_range && has(filter.projects, one.project) &&
          has(filter.users, one.user) && has(filter.clusters, one.cluster) &&
          has(filter.partitions, one.queue)) {
        expected.push_back(one);
      }
    }
    const auto number = [&](const Known& one) {
      const std::int64_t value = query.sort == Fact::kEnded ? one.ended
                                 : query.sort == Fact::kKwh ? one.energy
                                                            : one.cpu;
      const bool last = query.sort == Fact::kEnded ? value == 0 : value < 0 && !query.descending;
      return last ? kLast : value;
    };
    const auto word = [&](const Known& one) {
      const std::string value = query.sort == Fact::kName   ? name_of(one)
                                : query.sort == Fact::kUser ? one.user
                                                            : one.uuid;
      return std::pair(value.empty() != query.descending, value);
    };
    const bool texts =
        query.sort == Fact::kName || query.sort == Fact::kUser || query.sort == Fact::kUuid;
    // Units were written in this order, so it is that of their numbers.
    if (query.descending) {
      std::ranges::reverse(expected);
    }
    std::ranges::stable_sort(expected, [&](const Known& a, const Known& b) {
      const Known& first = query.descending ? b : a;
      const Known& second = query.descending ? a : b;
      return texts ? word(first) < word(second) : number(first) < number(second);
    });
    Texts ids;
    for (const Known& one : expected) {
      ids.push_back(one.id());
    }
    EXPECT_EQ(pages(query, 1000), ids) << round;
    EXPECT_EQ(pages(query, static_cast<std::size_t>(1 + any(20))), ids) << round;
    query.backwards = true;
    std::ranges::reverse(ids);
    EXPECT_EQ(pages(query, 7), ids) << round;

    SummaryQuery summary{.filter = filter, .facets = {Fact::kState, Fact::kUser}};
    summary.heat = {Fact::kCpu, Fact::kCpu};
    const auto sums = db_->reader().unit_summary(summary);
    ASSERT_TRUE(sums) << sums.error().message;
    std::map<std::string, std::int64_t> states;
    std::int64_t energy = 0;
    std::int64_t with_cpu = 0;
    for (const Known& one : expected) {
      ++states[one.state];
      energy += std::max<std::int64_t>(one.energy, 0);
      with_cpu += one.cpu >= 0 ? 1 : 0;
    }
    EXPECT_EQ(sums->units, std::ssize(expected));
    EXPECT_NEAR(sums->kwh, static_cast<double>(energy) * 1e-9, 1e-6);
    std::map<std::string, std::int64_t> counted;
    for (const FacetValue& value : sums->facets.at(0)) {
      counted[value.value] = value.units;
    }
    EXPECT_EQ(counted, states) << round;
    std::int64_t in_cells = 0;
    for (const auto& cell : sums->heat) {
      EXPECT_EQ(cell.x, cell.y);
      in_cells += cell.units;
    }
    EXPECT_EQ(in_cells, with_cpu) << round;
  }
}
}  // namespace
}  // namespace ceems::store
