// The audit of the load balancer (docs/audit.md).

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lb/frontend.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::lb {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// root is an admin; everyone else sees only unit 1.
class AuditedOwners final : public gate::Owners {
 public:
  Result<bool> is_admin(const std::string& user) override { return user == "root"; }
  Result<bool> may_see(const std::string& /*user*/,
                       const std::string& /*cluster*/,
                       const gate::UnitSet& units) override {
    return units == gate::UnitSet{"1"};
  }
  Result<gate::UnitSet> units_of(const std::string& /*user*/,
                                 const std::string& /*cluster*/,
                                 const promql::TimeSpan& /*alive*/,
                                 std::size_t /*limit*/) override {
    return gate::UnitSet{"1"};
  }
  Result<gate::SharedIds> shared_ids(const std::string& /*user*/,
                                     const std::string& /*cluster*/,
                                     const gate::UnitSet& /*units*/) override {
    return gate::SharedIds();
  }
  Owners* cached_only() override { return this; }
};

class LbAuditTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Config config;
    ClusterConfig cluster{.id = "c"};
    cluster.tsdb.push_back({.url = "http://192.0.2.1"});
    config.clusters.push_back(std::move(cluster));
    auto backends = Backends::create(gate::BackendType::kTsdb, config);
    auto log = audit::Log::open({.file = file()}, "ceems_lb", clock_);
    ASSERT_TRUE(backends && log);
    gate::GateRules rules;
    rules.clusters = {"c"};
    frontend_.publish(std::make_shared<FrontendSnapshot>(
        gate::BackendType::kTsdb, std::move(rules), std::make_shared<AuditedOwners>(),
        std::move(*backends), std::shared_ptr<audit::Log>(std::move(*log))));
  }
  [[nodiscard]] std::string file() const { return (dir_.path() / "audit.log").string(); }

  /// The lines that the request adds, decided as on a connection.
  std::string ask(const std::string& user,
                  const std::string& query,
                  const std::string& body = "",
                  const std::string& type = "application/x-www-form-urlencoded") {
    net::Request request;
    request.method = body.empty() ? "GET" : "POST";
    request.path = "/api/v1/query";
    request.query = query;
    request.target = request.path + "?" + query;
    request.body = body;
    request.remote_address = "192.0.2.7";
    request.headers = {{"X-Grafana-User", user},
                       {"X-Ceems-Cluster-Id", "c"},
                       {"Content-Type", type},
                       {"Authorization", "Basic hidden"},
                       {"Cookie", "hidden"}};
    net::Response response;
    if (!frontend_.handle_inline(request, response)) {
      frontend_.handle(request, response);
    }
    std::ifstream in(file());
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    return all.substr(std::exchange(seen_, all.size()));
  }

  ceems::testing::TempDir dir_;
  ceems::testing::FakeClock clock_;
  RequestMetrics metrics_;
  Frontend frontend_{gate::BackendType::kTsdb, metrics_};
  std::size_t seen_ = 0;
};

TEST_F(LbAuditTest, AnAdminsReadLeavesALineWithTheQueries) {
  const std::string line = ask("root", "query=up%7Buuid%3D%221%22%7D&api_key=hidden");
  EXPECT_THAT(line, HasSubstr(R"("event":"read","user":"root","role":"admin",)"
                              R"("peer":"192.0.2.7","method":"GET","path":"/api/v1/query",)"
                              R"("status":200,"cluster_id":["c"],"query":["up{uuid=\"1\"}"]})"));
  EXPECT_THAT(line, Not(HasSubstr("hidden")));
  EXPECT_THAT(ask("root", "", "query=up&x=hidden"),
              AllOf(HasSubstr(R"("method":"POST")"), HasSubstr(R"("query":["up"])"),
                    Not(HasSubstr("hidden"))));
}

/// The member `query` of a line.
std::string queries_in(const std::string& line) {
  const std::size_t at = line.find(R"(,"query":)");
  return at == std::string::npos ? "" : line.substr(at + 9, line.rfind('}') - at - 9);
}

TEST_F(LbAuditTest, TheQueryInALineIsTheOneThatTheGateDecided) {
  struct Case {
    std::string query;
    std::string body;
    std::string logged;
    std::string reason;  ///< of the denial, where the units are not the reason
  };
  const std::vector<Case> cases = {
      {"query=up%7buuid%3D%222%22%7d", "", R"(["up{uuid=\"2\"}"])", ""},
      {"query=a{uuid=%222%22}+-+b%2Bc", "", R"(["a{uuid=\"2\"} - b+c"])", "no_unit"},
      {"query=a{b=%22%252B%22,uuid=%222%22}", "", R"(["a{b=\"%2B\",uuid=\"2\"}"])", ""},
      {"%71uery=a{uuid=%222%22}&&Query=b&", "", R"(["a{uuid=\"2\"}"])", ""},
      {"query=a&query=b", "", R"(["a","b"])", "parameters"},
      {"query=a", "query=b", R"(["b","a"])", "parameters"},
      {"x=1", "query=b{uuid=%222%22}", R"(["b{uuid=\"2\"}"])", ""},
      {"query=a;query=b", "", R"(["a;query=b"])", "encoding"},
      {"x=1;2&query=a", "", R"(["a"])", "encoding"},
      {"query=a&x=%zz", "query=b", R"(["b","a"])", "encoding"},
      {"query=%zz+&query=%ff&query=%00", "", R"(["%zz+","%ff","%00"])", "encoding"},
      {"query", "", R"([""])", "syntax"},
      {"match%5B%5D=a&match[]=b", "", R"(["a","b"])", "parameters"},
  };
  for (const auto& [query, body, logged, reason] : cases) {
    const std::string refused = ask("eve", query, body);
    EXPECT_EQ(queries_in(refused), logged) << query << ' ' << body;
    EXPECT_THAT(refused, HasSubstr(R"("reason":")" + (reason.empty() ? "foreign_unit" : reason)))
        << query << ' ' << body;
    EXPECT_EQ(queries_in(ask("root", query, body)), logged) << query << ' ' << body;
  }
}

TEST_F(LbAuditTest, NoQueryHidesFromALine) {
  EXPECT_EQ(queries_in(ask("root", "", "query=up", "Application/X-WWW-Form-Urlencoded; a=b")),
            R"(["up"])");
  EXPECT_EQ(queries_in(ask("root", "", "x=" + std::string(100'000, 'y') + "&query=up")),
            R"(["up"])");
  std::string many;
  for (int i = 0; i < 2000; ++i) {
    many += "x&";
  }
  EXPECT_EQ(queries_in(ask("root", "", many + "query=up")), R"(["up"])");
}

TEST_F(LbAuditTest, EveryDenialLeavesALine) {
  EXPECT_THAT(ask("eve", "query=up%7Buuid%3D%222%22%7D"),
              HasSubstr(R"("event":"denied","user":"eve","role":"","peer":"192.0.2.7",)"
                        R"("method":"GET","path":"/api/v1/query","status":403,)"
                        R"("reason":"foreign_unit","cluster_id":["c"],)"
                        R"("query":["up{uuid=\"2\"}"]})"));
  EXPECT_THAT(ask("", "query=up"), HasSubstr(R"("status":401)"));
}

TEST_F(LbAuditTest, ReadsOfOnesOwnUnitsLeaveNone) {
  EXPECT_EQ(ask("eve", "query=up%7Buuid%3D%221%22%7D"), "");
}

}  // namespace
}  // namespace ceems::lb
