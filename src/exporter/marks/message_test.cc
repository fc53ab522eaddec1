#include "exporter/marks/message.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace ceems::exporter::marks {
namespace {

using Kind = Message::Kind;

TEST(Message, HasAVerbANameANumberAndAUnit) {
  const auto begin = parse_message("begin solve");
  ASSERT_TRUE(begin);
  EXPECT_EQ(begin->kind, Kind::kBegin);
  EXPECT_EQ(begin->name, "solve");
  EXPECT_EQ(parse_message("end io.write-2\n")->name, "io.write-2");
  const auto result = parse_message("  result \t step 50 ");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->kind, Kind::kResult);
  EXPECT_EQ(result->name, "step");
  EXPECT_DOUBLE_EQ(result->value, 50);
  EXPECT_EQ(result->measure, "");
  EXPECT_EQ(parse_message("result simulated 0.25 ns")->measure, "ns");
  const auto progress = parse_message("progress 1200 step");
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->kind, Kind::kProgress);
  EXPECT_EQ(progress->name, "step");
  EXPECT_DOUBLE_EQ(progress->value, 1200);
  const auto fom = parse_message("fom speed -83.5e-1 ns/day");
  ASSERT_TRUE(fom);
  EXPECT_EQ(fom->kind, Kind::kFom);
  EXPECT_DOUBLE_EQ(fom->value, -8.35);
  EXPECT_EQ(fom->measure, "ns/day");
  EXPECT_EQ(parse_message("fom accuracy 99 %")->measure, "%");
  EXPECT_EQ(parse_message("attach")->kind, Kind::kAttach);
}

TEST(Message, IsNothingInAnyOtherForm) {
  const std::string long_name(33, 'a');
  for (const std::string& text : {std::string(),
                                  std::string(" \n"),
                                  std::string("begin"),
                                  std::string("begin solve now"),
                                  std::string("Begin solve"),
                                  std::string("begin 1st"),
                                  std::string("begin a{b=\"c\"}"),
                                  std::string("begin a\0b", 9),
                                  std::string("begin \xc3\xa4"),
                                  "begin " + long_name,
                                  std::string("result step"),
                                  std::string("result step fifty"),
                                  std::string("result step -1"),
                                  std::string("result step nan"),
                                  std::string("result step inf"),
                                  std::string("result step 1e16"),
                                  std::string("result step 1 a\"b"),
                                  std::string("result step 1 ns too"),
                                  std::string("result step 1 12345678901234567"),
                                  std::string("progress step 5"),
                                  std::string("progress 5"),
                                  std::string("progress 5 step ns"),
                                  std::string("fom x 1e999"),
                                  std::string("attach me"),
                                  "begin a" + std::string(256, ' ')}) {
    EXPECT_FALSE(parse_message(text)) << text;
  }
  EXPECT_TRUE(parse_message("begin " + long_name.substr(1)));
}

TEST(CgroupPath, IsThatOfTheHierarchy) {
  constexpr std::string_view kText =
      "12:cpu,cpuacct:/slurm/uid_1000/job_5/step_0\n3:memory:/other\n1:name=systemd:/x\n"
      "0::/system.slice/a:b\n";
  EXPECT_EQ(parse_cgroup_path(kText, "cpuacct"), "/slurm/uid_1000/job_5/step_0");
  EXPECT_EQ(parse_cgroup_path(kText, "cpu"), "/slurm/uid_1000/job_5/step_0");
  EXPECT_EQ(parse_cgroup_path(kText, "memory"), "/other");
  EXPECT_EQ(parse_cgroup_path(kText, ""), "/system.slice/a:b");
  EXPECT_FALSE(parse_cgroup_path(kText, "pids"));
  EXPECT_FALSE(parse_cgroup_path("0::\n5::/x\n0:/y\n", ""));
  EXPECT_FALSE(parse_cgroup_path("", ""));
}

}  // namespace
}  // namespace ceems::exporter::marks
