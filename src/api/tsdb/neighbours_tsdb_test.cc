#include "api/tsdb/neighbours_tsdb.h"

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "api/tsdb/fleet.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tsdb::FakeTransport;

/// The range query's series, whose values depend on the minute of the two hours.
class Minutes {
 public:
  explicit Minutes(const FakeTransport::Request& request)
      : from_(std::stod(request.first("start"))),
        to_(std::stod(request.first("end"))),
        step_(std::stod(request.first("step"))) {}
  void add(const std::string& labels, const std::function<double(int)>& value_at) {
    rows_ += fmt::format(R"({}{{"metric":{{{}}},"values":[)", rows_.empty() ? "" : ",", labels);
    const auto last = std::llround((to_ - from_) / step_);
    for (int i = 0; i <= last; ++i) {
      rows_ += fmt::format(R"({}[{},"{}"])", i == 0 ? "" : ",", from_ + i * step_, value_at(i));
    }
    rows_ += "]}";
  }
  [[nodiscard]] Result<net::ClientResponse> answer() const {
    return FakeTransport::ok(R"({"status":"success","data":{"resultType":"matrix","result":[)" +
                             rows_ + "]}}");
  }

 private:
  double from_, to_, step_;
  std::string rows_;
};

bool reads(int minute) {
  return minute % 30 >= 20;
}

/// On n1, 11 reads for 10 of 30 minutes, and then 10 is slower. On scratch, 12 creates files in the
/// last 20 minutes, while five units of scratch wait, and 7, which does not use it.
Result<net::ClientResponse> noisy_cluster(const FakeTransport::Request& request) {
  if (request.path.ends_with("/query")) {
    return FakeTransport::ok(
        R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"hostname":"n1"},"value":[0,"1"]}]}})");
  }
  if (!request.path.ends_with("_range")) {
    return FakeTransport::ok(R"({"status":"success","data":{}})");
  }
  const std::string query = request.first("query");
  Minutes answer(request);
  const std::string victim = R"("hostname":"n1","uuid":"10","of":")";
  const std::string suspect = R"("hostname":"n1","uuid":"11","of":")";
  if (query.contains("ceems_perf_cpucycles_total")) {
    answer.add(victim + "cpus\"", [](int) { return 8; });
    answer.add(victim + "cpi\"",
               [](int i) { return (reads(i) ? 1.3 : 0.8) * (1 + 0.01 * (i % 3)); });
    answer.add(suspect + "cpus\"", [](int) { return 2; });
    answer.add(suspect + "io\"", [](int) { return 0.3; });
    answer.add(suspect + "bytes\"", [](int i) { return reads(i) ? 2e9 : 1e5; });
  } else if (query.contains("topk")) {
    answer.add(R"("filesystem":"scratch","uuid":"12","of":"metadata")",
               [](int i) { return i < 100 ? 5 : 3000; });
    answer.add(R"("filesystem":"scratch","uuid":"10","of":"bytes")", [](int) { return 1e6; });
    answer.add(R"("filesystem":"scratch","of":"metadata")",
               [](int i) { return i < 100 ? 500 : 3500; });
    answer.add(R"("filesystem":"scratch","of":"bytes")", [](int) { return 1e8; });
  } else {
    for (int unit = 7; unit < 12; ++unit) {
      answer.add(fmt::format(R"("uuid":"{}")", unit), [](int i) { return i < 100 ? 0.03 : 0.4; });
    }
    answer.add(R"("uuid":"14")", [](int i) { return i < 100 ? 0.03 : 0.4; });
    for (const int user : {8, 9, 10, 11, 12, 14}) {
      answer.add(fmt::format(R"("filesystem":"scratch","uuid":"{}")", user), [](int) { return 1; });
    }
  }
  return answer.answer();
}

/// ada has the unit 10 on hpc-a, which has a TSDB.
class NeighboursAnswer : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    auto transport = std::make_unique<FakeTransport>(
        [this](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
          if (request.path.ends_with("_range")) {
            asked_.push_back(request.first("query"));
          }
          if (down_) {
            return fail(ErrorCode::kUnavailable, "http://secret: refused");
          }
          auto answer = noisy_cluster(request);
          if (answer && calm_) {  // what asks for most pauses
            std::string& text = answer->body;
            const std::string much = R"("3000")";
            for (auto at = text.find(much); at != std::string::npos; at = text.find(much)) {
              text.replace(at, much.size(), R"("4")");
            }
          }
          if (answer && mounted_) {
            std::string& text = answer->body;
            const std::string name = "scratch";
            for (auto at = text.find(name); at != std::string::npos; at = text.find(name)) {
              text.replace(at, name.size(), "/home/bob");
            }
          }
          return answer;
        });
    tsdbs_["hpc-a"].client =
        std::make_unique<tsdb::Client>("http://t", std::move(transport), clock_);
    tsdbs_["hpc-a"].cluster_label = "ceems_id";
    ApiOptions options;
    options.fleet = &fleet_;
    options.site.clusters = {{.id = "hpc-a", .manager = "slurm", .series = true},
                             {.id = "hpc-b", .manager = "slurm", .series = false}};
    make(std::move(options));
  }
  bool down_ = false;
  bool calm_ = false;
  bool mounted_ = false;  ///< the file system is known by its mount point
  std::vector<std::string> asked_;
  ClusterTsdbs tsdbs_;
  Fleet fleet_{tsdbs_, clock_};
};

TEST_F(NeighboursAnswer, NamesWhoSlowsWhomDownOnANode) {
  const std::string path = "insight/neighbours/admin?cluster_id=hpc-a&host=n1";
  const std::string answer = body(path, "root");
  EXPECT_THAT(
      answer,
      HasSubstr(
          R"("data":[{"cluster_id":"hpc-a","kind":"node","node":"n1","suspect":"11","activity":"bytes",)"
          R"("victim":"10","signal":"cpi","with":1.313,"without":0.808,)"));
  EXPECT_THAT(answer, HasSubstr(R"("bins":[40,80],"times":7,"confidence":"likely"}])"));
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_THAT(asked_[0], HasSubstr(R"(hostname=~"n1",uuid!="",ceems_id="hpc-a")"));
  EXPECT_EQ(body(path, "root"), answer);
  EXPECT_EQ(asked_.size(), 1U) << "kept for a minute";
}

TEST_F(NeighboursAnswer, NamesStormsAndWhoAsksMost) {
  const std::string answer = body("insight/neighbours/admin?cluster_id=hpc-a", "root");
  EXPECT_THAT(
      answer,
      HasSubstr(
          R"("data":[{"cluster_id":"hpc-a","kind":"storm",)"
          R"("file_system":"scratch","suspect":"12","victims":5,)"
          R"("victims_of":"file_system","rate":3000,"of":"metadata","share":0.8571,"since_ts":)"));
  EXPECT_THAT(answer, HasSubstr(R"("seconds":1200,"confidence":"likely"},)"));
  // 20 of 60 minutes.
  EXPECT_THAT(
      answer,
      HasSubstr(R"({"cluster_id":"hpc-a","kind":"top","file_system":"scratch","suspect":"12",)"
                R"("bytes":null,"requests":null,"metadata":1003,"share":0.6689})"));
  EXPECT_THAT(answer, HasSubstr(R"("suspect":"10","bytes":1000000,"requests":null,)"
                                R"("metadata":null,"share":0.01}])"));
  ASSERT_EQ(asked_.size(), 2U);
  EXPECT_THAT(asked_[0], AllOf(HasSubstr("topk by (filesystem) (10, "),
                               HasSubstr(R"(mountpoint!~"/|/(boot|dev|)"),
                               HasSubstr(R"x("filesystem", "$1", "mountpoint", "(.+)")x"),
                               HasSubstr(R"(ceems_lustre_job_operations_total{uuid!="",)")));
  EXPECT_THAT(asked_[1], AllOf(HasSubstr(R"(uuid!="",resource="io",kind="some",ceems_id="hpc-a")"),
                               HasSubstr(R"(uuid!="",filesystem=~"scratch",ceems_id="hpc-a")")));
}

TEST_F(NeighboursAnswer, TellsUsersOfAVictimNotWhoItIs) {
  const std::string own = body("insight/neighbours?cluster_id=hpc-a&uuid=10", "ada");
  EXPECT_THAT(own, HasSubstr(R"("data":[{"cluster_id":"hpc-a","kind":"node","victim":"10",)"));
  EXPECT_THAT(own, HasSubstr(R"("kind":"storm","file_system":"scratch","victim":"10",)"));
  for (const std::string secret :
       {"suspect", R"("11")", R"("12")", "n1", "rate", "victims", "top"}) {
    EXPECT_THAT(own, Not(HasSubstr(secret)));
  }
  EXPECT_EQ(asked_.size(), 3U) << "and the question for its nodes";
  const std::string path = "/api/v1/insight/neighbours?cluster_id=hpc-a&uuid=10";
  EXPECT_EQ(get(path, "bob").status, 404);
  EXPECT_EQ(get(path).status, 401);
  EXPECT_EQ(get("/api/v1/insight/neighbours/admin?cluster_id=hpc-a", "ada").status, 403);
}

TEST_F(NeighboursAnswer, DoesNotTellUsersTheMountPointsOfOthers) {
  mounted_ = true;
  EXPECT_THAT(body("insight/neighbours/admin?cluster_id=hpc-a", "root"),
              HasSubstr(R"("file_system":"/home/bob","suspect":"12")"));
  const std::string own = body("insight/neighbours?cluster_id=hpc-a&uuid=10", "ada");
  EXPECT_THAT(own, HasSubstr(R"("kind":"storm","file_system":"","victim":"10",)"));
  EXPECT_THAT(own, Not(HasSubstr("bob")));
}

TEST_F(NeighboursAnswer, AskForWaitsWhereOneUnitHasMostRequestsOnly) {
  calm_ = true;
  EXPECT_THAT(body("insight/neighbours/admin?cluster_id=hpc-a", "root"),
              HasSubstr(R"("data":[{"cluster_id":"hpc-a","kind":"top","file_system":"scratch",)"));
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(NeighboursAnswer, SaysWhatIsMissing) {
  EXPECT_EQ(get("/api/v1/insight/neighbours/admin", "root").status, 400);
  EXPECT_EQ(get("/api/v1/insight/neighbours?cluster_id=hpc-a", "ada").status, 400);
  EXPECT_THAT(body("insight/neighbours/admin?cluster_id=hpc-b", "root"), HasSubstr(R"("data":[])"));
  EXPECT_THAT(body("insight/neighbours/admin?cluster_id=nowhere", "root"),
              HasSubstr(R"("data":[])"));
  // A node whose name is a regular expression is that node only.
  EXPECT_THAT(body("insight/neighbours/admin?cluster_id=hpc-a&host=n.*", "root"),
              HasSubstr(R"("data":[])"));
  down_ = true;
  for (const std::string path :
       {"neighbours?cluster_id=hpc-a&uuid=10", "neighbours/admin?cluster_id=hpc-a",
        "neighbours/admin?cluster_id=hpc-a&host=n2"}) {
    const auto failed = get("/api/v1/insight/" + path, "root");
    EXPECT_GE(failed.status, 500) << path;
    EXPECT_THAT(failed.body, Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace ceems::api
