// What the audit log of the API server says.
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/server_test_support.h"

namespace ceems::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ApiAuditTest : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    auto log = audit::Log::open({.file = file()}, "ceems_api_server", clock_);
    ASSERT_TRUE(log);
    log_ = std::move(*log);
    make({.roles = {.support = {"sue"}}, .audit = log_.get()});
  }
  [[nodiscard]] std::string file() const { return (dir_.path() / "audit.log").string(); }
  /// The lines that the request adds.
  std::string line(const std::string& path, const std::string& user) {
    static_cast<void>(get("/api/v1/" + path, user));
    std::ifstream in(file());
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    return all.substr(std::exchange(seen_, all.size()));
  }

  std::unique_ptr<audit::Log> log_;
  std::size_t seen_ = 0;
};

TEST_F(ApiAuditTest, ReadsOfOtherPeoplesDataLeaveALine) {
  EXPECT_THAT(line("units/admin?user=ada&cluster_id=hpc-a&uuid=1&password=hidden", "root"),
              AllOf(HasSubstr(R"("event":"read","user":"root","role":"admin","peer":"192.0.2.1",)"
                              R"("method":"GET","path":"/api/v1/units/admin","status":200,)"
                              R"("endpoint":["units/admin"],"cluster_id":["hpc-a"],)"
                              R"("of_user":["ada"],"uuid":["1"]})"),
                    Not(HasSubstr("hidden"))));
  EXPECT_THAT(line("usage/current/admin", "sue"), HasSubstr(R"("user":"sue","role":"support")"));
  EXPECT_THAT(line("units/admin", "ceems-int-svc"), HasSubstr(R"("role":"service")"));
  EXPECT_THAT(line("users/admin?role=admin", "root"), HasSubstr(R"("endpoint":["users/admin"])"));
  EXPECT_THAT(line("units/series?cluster_id=hpc-a&uuid=1", "root"),
              HasSubstr(R"("endpoint":["units/series"],"cluster_id":["hpc-a"],"uuid":["1"]})"));
}

TEST_F(ApiAuditTest, DenialsLeaveALine) {
  EXPECT_THAT(line("units/admin", "ada"),
              AllOf(HasSubstr(R"("event":"denied","user":"ada","role":"user")"),
                    HasSubstr(R"("status":403,"reason":"role")")));
  EXPECT_THAT(line("units/profile?cluster_id=hpc-a&uuid=1", "root"),
              HasSubstr(R"("endpoint":["units/profile"],"cluster_id":["hpc-a"],"uuid":["1"]})"));
  EXPECT_THAT(line("units/series?cluster_id=hpc-a&uuid=3", "ada"),
              HasSubstr(R"("status":403,"reason":"units")"));
  EXPECT_THAT(line("units/verify?cluster_id=hpc-a&uuid=3", "ada"), HasSubstr(R"("uuid":["3"])"));
  EXPECT_THAT(line("units", ""),
              HasSubstr(R"("status":401,"reason":"no_identity","endpoint":["units"])"));
}

TEST_F(ApiAuditTest, OwnDataAndCountsLeaveNone) {
  for (const std::string path :
       {"units", "usage/current", "usage/global", "projects", "users", "whoami",
        "units/series?cluster_id=hpc-a&uuid=1", "units/profile?cluster_id=hpc-a&uuid=1"}) {
    EXPECT_EQ(line(path, "ada"), "") << path;
  }
  for (const std::string path : {"clusters/admin", "stats/current/admin", "units", "whoami"}) {
    EXPECT_EQ(line(path, "root"), "") << path;
  }
  EXPECT_EQ(line("whoami?anonymous", ""), "");
}

}  // namespace
}  // namespace ceems::api
