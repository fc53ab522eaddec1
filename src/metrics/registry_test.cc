#include "metrics/registry.h"

#include <array>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/counting_new_test_support.h"

namespace ceems::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::array kRegistryBounds = {0.5, 1.0};

/// The page without the metrics of the process, which change.
std::string page_of(Registry& registry, const std::function<void(Sink&)>& add_more = {}) {
  std::string page;
  registry.append_page(page, add_more);
  std::string stable;
  std::size_t at = 0;
  while (at < page.size()) {
    const std::size_t end = page.find('\n', at) + 1;
    const std::string line = page.substr(at, end - at);
    if (line.find("process_") == std::string::npos) {
      stable += line;
    }
    at = end;
  }
  return stable;
}

TEST(Registry, PageHasAllFamiliesByNameThenHistogramsInTheOrderOfCreation) {
  Registry registry("a", "the test");
  registry.histograms("b_seconds", "How long.", {"route", "method"}, kRegistryBounds)
      .with({"say \"x\"", "get"})
      .observe(0.75);
  registry.histograms("a_seconds", "How long.", {}, kRegistryBounds).with({});
  registry.counters("c_total", "Counts.", {"kind"}).with({"z"}).add(3);
  registry.counters("c_total", "Counts.", {"kind"}).with({"y"}).add();
  registry.gauge("b", "Level.").set(-2.5);
  const std::string page = page_of(registry, [](Sink& sink) {
    sink.add(Desc("bb", "Known at the time of the scrape.", Type::kGauge, {}), 7);
  });
  EXPECT_THAT(page, StartsWith("# HELP a_build_info Version of the program; the value is always 1."
                               "\n# TYPE a_build_info gauge\na_build_info{branch="));
  EXPECT_THAT(page, HasSubstr("\n# HELP b Level.\n# TYPE b gauge\nb -2.5\n"
                              "# HELP bb Known at the time of the scrape.\n# TYPE bb gauge\nbb 7\n"
                              "# HELP c_total Counts.\n# TYPE c_total counter\n"
                              "c_total{kind=\"y\"} 1\nc_total{kind=\"z\"} 3\n"
                              "# HELP b_seconds How long.\n# TYPE b_seconds histogram\n"
                              R"(b_seconds_bucket{method="get",route="say \"x\"",le="0.5"} 0)"));
  EXPECT_THAT(page, HasSubstr("\nb_seconds_count{method=\"get\",route=\"say \\\"x\\\"\"} 1\n"
                              "# HELP a_seconds How long.\n# TYPE a_seconds histogram\n"
                              "a_seconds_bucket{le=\"0.5\"} 0\n"));
}

TEST(Registry, PageHasTheProcess) {
  Registry registry("a", "the test");
  std::string page;
  registry.append_page(page);
  EXPECT_THAT(page,
              HasSubstr("\n# HELP process_open_fds File descriptors that the test has open."));
  Sink sink;
  registry.add_to(sink);
  std::string same;
  sink.render(Exposition::kOpenMetrics, same);
  EXPECT_THAT(same, HasSubstr("\nprocess_open_fds "));
}

TEST(Registry, SeriesStayWhereTheyAreAndAreFoundAgainWithoutAllocation) {
  Registry registry("a", "the test");
  auto& family = registry.counters("c_total", "Counts.", {"code"});
  Counter& first = family.with({"0"});
  for (int i = 0; i < 1000; ++i) {
    family.with({std::to_string(i)}).add();
  }
  const std::size_t before = allocation_count();
  EXPECT_EQ(&family.with({"0"}), &first);
  first.add(2);
  EXPECT_EQ(allocation_count(), before);
  EXPECT_EQ(first.value(), 3U);
  EXPECT_EQ(&registry.counters("c_total", "Counts.", {"code"}), &family);
}

TEST(Registry, ZerosAreHiddenOnRequest) {
  Registry registry("a", "the test");
  Counter& allowed =
      registry.counters("d_total", "Decisions.", {"reason"}).hide_zeros().with({"ok"});
  EXPECT_THAT(page_of(registry), Not(HasSubstr("d_total")));
  allowed.add();
  EXPECT_THAT(page_of(registry), HasSubstr("\nd_total{reason=\"ok\"} 1\n"));
}

TEST(Registry, CountsOfSeveralThreadsAreNotLost) {
  Registry registry("a", "the test");
  auto& family = registry.counters("c_total", "Counts.", {"code"});
  Gauge& gauge = registry.gauge("g", "Level.");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 1000; ++n) {
          family.with({n % 2 == 0 ? "even" : "odd"}).add();
          gauge.add(n % 2 == 0 ? 1 : -1);
          if (n % 500 == 0) {
            page_of(registry);
          }
        }
      });
    }
  }
  EXPECT_EQ(family.with({"even"}).value(), 2000U);
  EXPECT_EQ(family.with({"odd"}).value(), 2000U);
  EXPECT_EQ(gauge.value(), 0);
}

}  // namespace
}  // namespace ceems::metrics
