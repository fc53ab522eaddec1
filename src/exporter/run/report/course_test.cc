#include "exporter/run/report/course.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter::run {
namespace {

using ::testing::IsEmpty;

/// A sample of a node with two domains that draw 60 W and 40 W, and two busy CPUs.
void add_sample(NodeCourse& course, std::int64_t ms) {
  const double elapsed = static_cast<double>(ms) / 1000;
  const std::string labels = R"(hostname="n1",uuid="a b } 7")";
  course.add(fmt::format("ceems_compute_unit_cpu_user_seconds_total{{{}}} {} {}", labels,
                         1.5 * elapsed, ms));
  course.add(fmt::format("ceems_compute_unit_cpu_system_seconds_total{{{}}} {} {}", labels,
                         0.5 * elapsed, ms));
  course.add(fmt::format("ceems_compute_unit_memory_rss_bytes{{{}}} {} {}", labels, 1000, ms));
  course.add(fmt::format("ceems_compute_unit_energy_joules_total{{{},domain=\"gpu\"}} {} {}",
                         labels, 60 * elapsed, ms));
  course.add(fmt::format("ceems_compute_unit_energy_joules_total{{{},domain=\"other\"}} {} {}",
                         labels, 40 * elapsed, ms));
}

TEST(NodeCourse, JoinsTheLinesOfASample) {
  NodeCourse course;
  add_sample(course, 0);
  add_sample(course, 1000);
  add_sample(course, 1000);  // a frame that is there twice
  add_sample(course, 500);   // and an older one
  add_sample(course, 3000);
  const auto& points = course.points();
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[2].ms, 3000);
  EXPECT_DOUBLE_EQ(points[2].joules, 300);
  EXPECT_DOUBLE_EQ(points[2].cpu_seconds, 6);
  EXPECT_DOUBLE_EQ(points[2].memory_bytes, 1000);
}

TEST(NodeCourse, IgnoresOtherLines) {
  NodeCourse course;
  for (const char* line :
       {"", "#ceems-jobfile 1 {}", "ceems_compute_unit_", "ceems_compute_unit_x{} 1",
        "ceems_compute_unit_energy_joules_total{} nan 5",
        "ceems_compute_unit_energy_joules_total{} -1 5",
        "ceems_compute_unit_energy_joules_total{} 1 -5",
        "ceems_compute_unit_energy_joules_total} 1 5", "other{} 1 1"}) {
    course.add(line);
  }
  EXPECT_THAT(course.points(), IsEmpty());
}

TEST(NodeCourse, StaysSmall) {
  NodeCourse course;
  constexpr int kSamples = 50'000;
  for (int i = 0; i < kSamples; ++i) {
    add_sample(course, i * 1000);
  }
  const auto& points = course.points();
  EXPECT_LE(points.size(), NodeCourse::kMaxPoints);
  EXPECT_GE(points.size(), NodeCourse::kMaxPoints / 2);
  EXPECT_EQ(points.front().ms, 0);
  EXPECT_EQ(points.back().ms, (kSamples - 1) * 1000);
}

TEST(CourseOf, AddsNodes) {
  NodeCourse one;
  NodeCourse two;
  for (int second = 0; second <= 10; ++second) {
    add_sample(one, second * 1000);
    if (second >= 5) {
      add_sample(two, second * 1000);
    }
  }
  const Course course = course_of({one.points(), two.points(), {}}, 0, 10'000, 10);
  ASSERT_EQ(course.watts.size(), 10U);
  EXPECT_DOUBLE_EQ(course.step_seconds, 1);
  EXPECT_NEAR(course.watts[0].value(), 100, 1e-9);
  EXPECT_NEAR(course.watts[4].value(), 100, 1e-9);
  EXPECT_NEAR(course.watts[5].value(), 200, 1e-9);
  EXPECT_NEAR(course.watts[9].value(), 200, 1e-9);
  EXPECT_NEAR(course.cpus[0].value(), 2, 1e-9);
  EXPECT_NEAR(course.memory_bytes[9].value(), 2000, 1e-9);
}

TEST(CourseOf, HasNothingWhereThereIsNoSample) {
  NodeCourse late;
  for (int second = 5; second <= 10; ++second) {
    add_sample(late, second * 1000);
  }
  const Course course = course_of({late.points()}, 0, 20'000, 4);
  ASSERT_EQ(course.watts.size(), 4U);
  EXPECT_EQ(course.watts[0], std::nullopt);
  EXPECT_NEAR(course.watts[1].value(), 100, 1e-9);
  EXPECT_EQ(course.watts[3], std::nullopt);
  EXPECT_TRUE(course_of({}, 0, 10, 4).empty());
  EXPECT_TRUE(course_of({late.points()}, 10, 10, 4).empty());
}

}  // namespace
}  // namespace ceems::exporter::run
