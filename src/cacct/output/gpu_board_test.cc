#include "cacct/output/gpu_board.h"

#include <cstdlib>
#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::cacct {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 2025-12-31 23:10 and 23:20 UTC.
const std::string kAnswer =
    R"({"status":"success","data":{"step_s":600,"times":[1767222600000,1767223200000],"rows":[)"
    R"({"cluster_id":"hpc-a","host":"g1","gpu":"0","instance":"","cells":[)"
    R"({"units":[{"uuid":"7","user":"ada","busy":0.66,"sm":0.33}],"others":true},)"
    R"({"units":[{"uuid":"7","user":"ada","busy":0,"sm":0}],"others":false}]},)"
    R"({"cluster_id":"hpc-a","host":"g1","gpu":"1","instance":"3","cells":[null,)"
    R"({"units":[],"others":false}]},)"
    R"({"cluster_id":"hpc-a","host":"g10","gpu":"0","instance":"","cells":[)"
    R"({"units":[],"others":true},)"
    R"({"units":[{"uuid":"9","user":null,"busy":1,"sm":null}],"others":false}]}],)"
    R"("missing":[{"cluster_id":"b","reason":"no_tsdb"}]}})";

class Board : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    auto board = parse_gpu_board(kAnswer);
    ASSERT_TRUE(board);
    board_ = std::move(*board);
  }
  GpuBoard board_;
};

TEST_F(Board, IsATableWithSymbols) {
  EXPECT_EQ(draw_gpu_board(board_, {.ascii = true}),
            "Node  GPU  23:10             23:20\n"
            "g1    0    = ada 33 (66) +1  ! ada 0 (0)\n"
            "g1    1/3  ?                 .\n"
            "g10   0    used              # 9 - (100)\n"
            "\n"
            "In percent of the 10 minutes before each time: SMs that worked (GPU busy).\n"
            "! 0  - below 25  = below 50  + below 75  # up to 100  . idle  used by others  ? "
            "unknown\n");
  const std::string text = draw_gpu_board(board_, {});
  EXPECT_THAT(text, HasSubstr("▒ ada 33 (66) +1"));
  EXPECT_THAT(text, HasSubstr("█ 9 – (100)"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(draw_gpu_board(board_, {.colour = true}),
              HasSubstr("\x1b[33m▒ ada 33 (66) +1\x1b[0m"));
}

/// Tasks of arrays and parts of heterogeneous jobs have the ids that squeue and sacct show.
TEST(GpuBoardIds, AreThoseOfSlurm) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const auto board = parse_gpu_board(
      R"({"status":"success","data":{"step_s":600,"times":[1767222600000],"rows":[)"
      R"({"cluster_id":"hpc-a","host":"g1","gpu":"0","instance":"","cells":[{"units":[)"
      R"({"uuid":"7101","user":"ada","array":"7100_4","busy":1,"sm":null},)"
      R"({"uuid":"8201","user":"ada","array":"8200+1","busy":0,"sm":null}],"others":false}]}],)"
      R"("missing":[]}})");
  ASSERT_TRUE(board);
  EXPECT_THAT(gpu_board_csv(*board), HasSubstr(",shown,ada,7100_4,1,\n"));
  EXPECT_THAT(gpu_board_csv(*board), HasSubstr(",shown,ada,8200+1,0,\n"));
  EXPECT_THAT(gpu_board_json(*board), HasSubstr(R"("uuid":"7101","user":"ada","array":"7100_4")"));
}

TEST_F(Board, ShowsTheLastPeriodsThatFit) {
  const std::string text = draw_gpu_board(board_, {.ascii = true, .width = 30});
  EXPECT_THAT(text, HasSubstr("Node  GPU  23:20\n"));
  EXPECT_THAT(text, Not(HasSubstr("23:10")));
  EXPECT_THAT(draw_gpu_board(board_, {.ascii = true, .width = 1}), HasSubstr("23:20"));
  EXPECT_THAT(draw_gpu_board({}, {}), HasSubstr("Node  GPU\n"));
}

TEST_F(Board, IsCsvWithoutFormulas) {
  board_.lines.resize(2);
  board_.lines[0].cells[0].units[0].user = "=cmd|'x'!A0\"";
  EXPECT_EQ(gpu_board_csv(board_),
            "cluster,node,gpu,instance,end,state,user,unit,busy,sm\n"
            "hpc-a,g1,0,,2025-12-31T23:10:00+0000,shown,\"'=cmd|'x'!A0\"\"\","
            "7,0.66,0.33\n"
            "hpc-a,g1,0,,2025-12-31T23:10:00+0000,used,,,,\n"
            "hpc-a,g1,0,,2025-12-31T23:20:00+0000,shown,ada,7,0,0\n"
            "hpc-a,g1,1,3,2025-12-31T23:10:00+0000,unknown,,,,\n"
            "hpc-a,g1,1,3,2025-12-31T23:20:00+0000,idle,,,,\n");
}

TEST_F(Board, IsTheJsonOfTheServer) {
  board_.lines.erase(board_.lines.begin(), board_.lines.begin() + 2);
  EXPECT_EQ(gpu_board_json(board_),
            R"({"times":[1767222600000,1767223200000],"rows":[)"
            R"({"cluster_id":"hpc-a","host":"g10","gpu":"0","instance":"","cells":[)"
            R"({"units":[],"others":true},)"
            R"({"units":[{"uuid":"9","user":null,"busy":1,"sm":null}],"others":false}]}]})"
            "\n");
  EXPECT_EQ(board_.missing, std::vector<std::string>{"b: no_tsdb"});
}

TEST(ParseGpuBoard, RefusesWhatIsNone) {
  for (const char* text :
       {"", "[]", "{}", R"({"data":[]})", R"({"data":{"times":[1],"rows":[{}],"missing":[]}})",
        R"({"data":{"times":[-1],"rows":[],"missing":[]}})",
        R"({"data":{"times":[1],"rows":[{"cells":[]}],"missing":[]}})"}) {
    EXPECT_FALSE(parse_gpu_board(text)) << text;
  }
  const auto board = parse_gpu_board(
      R"({"data":{"times":[1],"missing":[],"rows":[{"host":"a\u001b[0m","cells":[{"units":[3,{}]}]}]}})");
  ASSERT_TRUE(board);
  EXPECT_EQ(board->lines[0].host, "a\uFFFD[0m");
  EXPECT_EQ(board->lines[0].cells[0].units.size(), 1U);
}

}  // namespace
}  // namespace ceems::cacct
