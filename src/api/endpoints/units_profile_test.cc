#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/profiles/pyroscope.h"
#include "api/server_test_support.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FakeProfiles final : public ProfileSource {
 public:
  [[nodiscard]] bool has(std::string_view cluster_id) const override {
    return cluster_id == "hpc-a";
  }
  Result<Flame> profile(const ProfileRequest& request) override {
    asked = fmt::format("{} {} {} {}", request.cluster_id, request.uuid, request.from_ms - kNow,
                        request.to_ms - kNow);
    return answer;
  }
  std::string asked;
  Result<Flame> answer = Flame{.names = {"total", "<b>\u202e"},
                               .levels = {{{0, 50, 0, 0}}, {{10, 40, 40, 1}}},
                               .left_out = 3};
};

class UnitProfile : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    make({.profiles = &profiles_});
  }
  static constexpr const char* kPath = "units/profile?cluster_id=hpc-a&uuid=1";
  FakeProfiles profiles_;
};

TEST_F(UnitProfile, IsOfTheLifeOfTheUnit) {
  EXPECT_EQ(
      body(kPath, "ada"),
      R"({"status":"success","data":{"state":"profile","from":1767222000000,"to":1767223800000,"total":50,"left_out":3,"names":["total","\u003cb\u003e)"
      "\u202e"
      R"("],"levels":[[[0,50,0,0]],[[10,40,40,1]]]}})"
      "\n");
  EXPECT_EQ(profiles_.asked, "hpc-a 1 -3600000 -1800000");
  // Of a part of it, and nothing beside it, because ids are used again.
  static_cast<void>(body(fmt::format("{}&from={}&to={}", kPath, (kNow - kHour + 60000) / 1000,
                                     (kNow - kHour + 120000) / 1000),
                         "ada"));
  EXPECT_EQ(profiles_.asked, "hpc-a 1 -3540000 -3480000");
  static_cast<void>(body(std::string(kPath) + "&from=0&to=1800000000", "ada"));
  EXPECT_EQ(profiles_.asked, "hpc-a 1 -3660000 -1740000");
}

TEST_F(UnitProfile, IsForOwnersAndAdmins) {
  EXPECT_EQ(get(std::string("/api/v1/") + kPath).status, 401);
  EXPECT_EQ(get(std::string("/api/v1/") + kPath, "bob").status, 403);
  EXPECT_EQ(get("/api/v1/units/profile?cluster_id=hpc-a&uuid=nothing", "root").status, 403);
  EXPECT_EQ(get("/api/v1/units/profile?cluster_id=hpc-b&uuid=3", "ada").status, 403);
  EXPECT_EQ(get("/api/v1/units/profile?uuid=1", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/units/profile?cluster_id=hpc-a&uuid=1&uuid=3", "ada").status, 400);
  EXPECT_EQ(get(std::string("/api/v1/") + kPath + "&from=x", "ada").status, 400);
  EXPECT_EQ(profiles_.asked, "");
  EXPECT_EQ(get(std::string("/api/v1/") + kPath, "root").status, 200);
}

TEST_F(UnitProfile, SaysThatThereIsNone) {
  EXPECT_THAT(body("units/profile?cluster_id=hpc-b&uuid=1", "ada"),
              HasSubstr(R"("state":"none","from":1767222000000,"to":1767223800000,"total":0,)"
                        R"("left_out":0,"names":[],"levels":[])"));
  EXPECT_EQ(profiles_.asked, "");
  profiles_.answer = Flame{};
  EXPECT_THAT(body(kPath, "ada"), HasSubstr(R"("state":"empty")"));
  EXPECT_THAT(body(std::string(kPath) + "&from=1800000000", "ada"),
              HasSubstr(R"("state":"empty")"));
  make();
  EXPECT_THAT(body(kPath, "ada"), HasSubstr(R"("state":"none")"));
}

TEST_F(UnitProfile, OfALongUnitIsThatOfItsLastDay) {
  clock_.advance(std::chrono::hours(72));
  EXPECT_EQ(get("/api/v1/units/profile?cluster_id=hpc-a&uuid=10", "ada").status, 200);
  EXPECT_EQ(profiles_.asked, fmt::format("hpc-a 10 {} {}", 48 * kHour, 72 * kHour));
}

TEST_F(UnitProfile, HasNothingOfOthersWithTheSameId) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + 3 * kHour};
  model::Unit next = job("1", "eve", "optics");
  next.started_at_ts = next.created_at_ts = kNow - kHour / 2;
  next.started_at = next.created_at = "2025-12-31T23:30:00+0000";
  next.ended_at_ts = kNow + kHour;
  next.ended_at = "2026-01-01T01:00:00+0000";
  update.units = {next};
  write(update);
  clock_.advance(std::chrono::hours(3));
  EXPECT_EQ(get(std::string("/api/v1/") + kPath, "ada").status, 200);
  // A minute before the life of eve's unit is not ada's.
  EXPECT_EQ(profiles_.asked, "hpc-a 1 -3600000 -1860001");
  EXPECT_EQ(get(std::string("/api/v1/") + kPath, "eve").status, 200);
  EXPECT_EQ(profiles_.asked, "hpc-a 1 -1739000 3600000");
}

TEST_F(UnitProfile, FailuresAreSaidWithoutNamesOfServers) {
  const auto answered = [&](ErrorCode code) {
    profiles_.answer = fail(code, "http://secret:4040: refused");
    const auto response = get(std::string("/api/v1/") + kPath, "ada");
    EXPECT_THAT(response.body, Not(HasSubstr("secret")));
    return fmt::format("{} {}", response.status,
                       response.body.substr(response.body.find("\"error\":")));
  };
  EXPECT_THAT(answered(ErrorCode::kTimeout),
              HasSubstr("503 \"error\":\"the profile server sent no"));
  EXPECT_THAT(answered(ErrorCode::kUnavailable), HasSubstr("503"));
  EXPECT_THAT(answered(ErrorCode::kPermissionDenied),
              HasSubstr("500 \"error\":\"the profile server refuses"));
  EXPECT_THAT(answered(ErrorCode::kParse), HasSubstr("is not a profile"));
  EXPECT_THAT(answered(ErrorCode::kInvalidArgument), HasSubstr("400"));
}

}  // namespace
}  // namespace ceems::api
