#include "metrics/histogram.h"

#include <array>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::metrics {
namespace {

using ::testing::HasSubstr;

constexpr std::array kBounds = {0.5, 1.0, 10.0};

std::string text_of(const Histogram& histogram, std::string_view labels = "") {
  std::string out;
  histogram.append(out, "h", labels);
  return out;
}

TEST(Histogram, BucketsAreCumulativeAndIncludeTheirBound) {
  Histogram histogram(kBounds);
  for (const double value : {0.1, 0.5, 0.75, 1.0, 11.0}) {
    histogram.observe(value);
  }
  EXPECT_EQ(text_of(histogram),
            "h_bucket{le=\"0.5\"} 2\nh_bucket{le=\"1\"} 4\nh_bucket{le=\"10\"} 4\n"
            "h_bucket{le=\"+Inf\"} 5\nh_sum 13.35\nh_count 5\n");
}

TEST(Histogram, LabelsComeBeforeTheBound) {
  Histogram histogram(kBounds);
  EXPECT_THAT(text_of(histogram, "route=\"units\""),
              HasSubstr("h_bucket{route=\"units\",le=\"+Inf\"} 0\nh_sum{route=\"units\"} 0\n"
                        "h_count{route=\"units\"} 0\n"));
}

TEST(Histogram, CountsFromSeveralThreadsAreNotLost) {
  Histogram histogram(Histogram::latencies());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&histogram] {
        for (int n = 0; n < 1000; ++n) {
          histogram.observe(0.25);
        }
      });
    }
  }
  EXPECT_THAT(text_of(histogram), HasSubstr("h_bucket{le=\"0.1\"} 0\nh_bucket{le=\"0.25\"} 4000"));
  EXPECT_THAT(text_of(histogram), HasSubstr("h_sum 1000\nh_count 4000\n"));
}

TEST(Histogram, HeaderNamesTheType) {
  std::string out;
  append_histogram_header(out, "h", "How long.");
  EXPECT_EQ(out, "# HELP h How long.\n# TYPE h histogram\n");
}

}  // namespace
}  // namespace ceems::metrics
