#include "gate/api_owners.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/mutex.h"
#include "net/server/server.h"

namespace ceems::gate {
namespace {

Result<std::vector<std::string>> names(int status, std::string body) {
  return parse_names({.status = status, .headers = {}, .body = std::move(body)}, "name");
}

TEST(ParseNames, ReadsAList) {
  EXPECT_EQ(names(200, R"({"status":"success","data":[{"name":"a"},{"name":"b","x":1}]})").value(),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names(200, R"({"status":"success","data":[]})").value(), std::vector<std::string>{});
}

TEST(ParseNames, OddRowsHideNoOthers) {
  for (const char* row : {R"("a")", "1", "null", "[]", "{}", R"({"name":null})", R"({"name":1})"}) {
    const std::string rows = std::string("[") + row + R"(,{"name":"a"}])";
    EXPECT_EQ(names(200, R"({"status":"success","data":)" + rows + "}").value(),
              std::vector<std::string>{"a"})
        << row;
  }
  EXPECT_EQ(names(200, R"({"data":[{"name":"a"}]})").value(), std::vector<std::string>{"a"});
  EXPECT_EQ(names(200, R"({"status":null,"data":[{"name":"a"}]})").value(),
            std::vector<std::string>{"a"});
}

TEST(ParseNames, EverythingElseIsNoAnswer) {
  EXPECT_FALSE(names(500, R"({"status":"success","data":[]})"));
  EXPECT_FALSE(names(200, R"({"status":"error","data":[]})"));
  for (const char* body :
       {"", "[]", "{", R"({"status":"success"})", R"({"status":"success","data":null})",
        R"({"status":"success","data":{"name":"a"}})"}) {
    EXPECT_FALSE(names(200, body)) << body;
  }
}

class ApiOwnersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    net::ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    server = *net::Server::create(
        std::move(options), [this](const net::Request& request, net::Response& response) {
          const MutexLock lock(mutex);
          response.status = status;
          if (!verified.empty()) {
            response.set_header("X-Ceems-Verified", verified);
          }
          targets.push_back(request.target);
          users.push_back(*net::find_header(request.headers, "X-Grafana-User"));
          if (refused != 0 && targets.size() == refused) {
            response.status = refusal;
          }
          if (!pages.empty()) {
            response.body = pages[std::min(targets.size(), pages.size()) - 1];
          }
        });
    server->start();
    owners = *api_owners("http://" + server->addresses()[0] + "/prefix/", {});
  }
  static UnitSet ids(int count) {
    UnitSet units;
    for (int i = 0; i < count; ++i) {
      units.insert("5b0cd2f7-1c7e-4d4e-9b6f-" + std::to_string(1'000'000'000'000 + i));
    }
    return units;
  }

  Mutex mutex;
  int status = 200;
  std::string verified = "each";   ///< how units are judged; empty: the server does not say
  std::size_t refused = 0;         ///< the request that is
  int refusal = 403;               ///< its status
  std::vector<std::string> pages;  ///< bodies of the first answer, the second ...; the last stays
  std::vector<std::string> targets;
  std::vector<std::string> users;
  std::unique_ptr<net::Server> server;
  std::unique_ptr<Owners> owners;
};

TEST_F(ApiOwnersTest, AsksForUnitsAsTheUser) {
  EXPECT_TRUE(owners->may_see("alice", "c 1", {"a&b", "c"}).value_or(false));
  EXPECT_EQ(targets, std::vector<std::string>{
                         "/prefix/api/v1/units/verify?cluster_id=c%201&uuid=a%26b&uuid=c"});
  EXPECT_EQ(users, std::vector<std::string>{"alice"});
  status = 403;
  EXPECT_FALSE(owners->may_see("alice", "c", {"a"}).value_or(true));
  status = 500;
  EXPECT_FALSE(owners->may_see("alice", "c", {"a"}));
  EXPECT_FALSE(owners->may_see("", "c", {"a"}).value_or(true));
  EXPECT_FALSE(owners->may_see("alice", "c", {}).value_or(true));
}

TEST_F(ApiOwnersTest, AQuestionThatBreaksOffIsAskedOnceMore) {
  refused = 1;
  refusal = 502;
  EXPECT_TRUE(owners->may_see("alice", "c", {"a"}).value_or(false));
  EXPECT_EQ(targets.size(), 2U);
  EXPECT_EQ(targets.front(), targets.back());
  EXPECT_EQ(users, (std::vector<std::string>{"alice", "alice"}));
  targets.clear();
  status = 502;
  EXPECT_FALSE(owners->may_see("alice", "c", {"a"}));
  EXPECT_EQ(targets.size(), 2U);
  targets.clear();
  refused = 0;
  status = 503;  // a server that is overloaded
  EXPECT_FALSE(owners->may_see("alice", "c", {"a"}));
  EXPECT_EQ(targets.size(), 1U);
}

TEST(ApiOwners, ASecondServerBehindTheAddressIsAsked) {
  const UniqueFd address(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_GE(address.get(), 0);
  sockaddr_in local{};
  local.sin_family = AF_INET;
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof local;
  auto* const raw = reinterpret_cast<sockaddr*>(&local);
  ASSERT_EQ(::bind(address.get(), raw, size), 0);
  ASSERT_EQ(::getsockname(address.get(), raw, &size), 0);
  ASSERT_EQ(::listen(address.get(), 4), 0);
  const std::jthread servers([&address] {
    UniqueFd server(::accept(address.get(), nullptr, nullptr));
    server = UniqueFd();  // the first ends without an answer
    server = UniqueFd(::accept(address.get(), nullptr, nullptr));
    std::array<char, 1024> question{};
    constexpr std::string_view kAnswer = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    if (::recv(server.get(), question.data(), question.size(), 0) > 0) {
      static_cast<void>(::send(server.get(), kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL));
    }
  });
  const auto owners = *api_owners("http://127.0.0.1:" + std::to_string(ntohs(local.sin_port)), {});
  const auto sees = owners->may_see("alice", "c", {"a"});
  ::shutdown(address.get(), SHUT_RDWR);  // ends a server that was not asked
  ASSERT_TRUE(sees) << sees.error().message;
  EXPECT_FALSE(*sees);
}

TEST_F(ApiOwnersTest, ManyUnitsTakeSeveralRequestsAllOfWhichMustAgree) {
  const UnitSet units = ids(1000);
  EXPECT_TRUE(owners->may_see("alice", "c", units).value_or(false));
  const std::size_t requests = targets.size();
  EXPECT_GT(requests, 5U);
  std::size_t asked = 0;
  for (const std::string& target : targets) {
    EXPECT_LT(target.size(), 8000U);
    for (std::size_t at = target.find("&uuid="); at != std::string::npos;
         at = target.find("&uuid=", at + 1)) {
      ++asked;
    }
  }
  EXPECT_EQ(asked, 1000U);
  targets.clear();
  refused = requests;
  EXPECT_FALSE(owners->may_see("alice", "c", units).value_or(true));
  targets.clear();
  refused = 2;
  EXPECT_FALSE(owners->may_see("alice", "c", units).value_or(true));
  EXPECT_EQ(targets.size(), 2U);
}

TEST_F(ApiOwnersTest, ServersThatCountRowsAreAskedForOneUnitAtATime) {
  const std::string begin = "/prefix/api/v1/units/verify?cluster_id=c";
  for (const std::string word : {"", "all"}) {
    targets.clear();
    verified = word;
    refused = 0;
    EXPECT_TRUE(owners->may_see("alice", "c", {"dup", "own", "x"}).value_or(false));
    EXPECT_EQ(targets,
              (std::vector<std::string>{begin + "&uuid=dup&uuid=own&uuid=x", begin + "&uuid=dup",
                                        begin + "&uuid=own", begin + "&uuid=x"}));
    // "dup" has two rows, so "dup" and "foreign" together pass there.
    targets.clear();
    refused = 3;
    EXPECT_FALSE(owners->may_see("alice", "c", {"dup", "foreign"}).value_or(true));
    EXPECT_EQ(targets.back(), begin + "&uuid=foreign");
    targets.clear();
    refused = 1;
    EXPECT_FALSE(owners->may_see("alice", "c", {"dup", "foreign"}).value_or(true));
    EXPECT_EQ(targets.size(), 1U);
    targets.clear();
    refused = 0;
    EXPECT_TRUE(owners->may_see("alice", "c", {"own"}).value_or(false));
    EXPECT_EQ(targets.size(), 1U) << "one unit is asked for by itself anyway";
  }
}

TEST_F(ApiOwnersTest, OutagesBetweenSingleUnitsDeny) {
  verified.clear();
  refused = 3;
  refusal = 500;
  EXPECT_FALSE(owners->may_see("alice", "c", {"a", "b", "c"}));
  EXPECT_EQ(targets.size(), 3U);
}

TEST_F(ApiOwnersTest, OfServersThatCountRowsFewUnitsAreAskedFor) {
  verified.clear();
  EXPECT_TRUE(owners->may_see("alice", "c", ids(100)).value_or(false));
  EXPECT_EQ(targets.size(), 101U);
  targets.clear();
  EXPECT_FALSE(owners->may_see("alice", "c", ids(101)));
  EXPECT_EQ(targets.size(), 1U);
}

std::string page_of(int first, int count, const std::string& next = {}) {
  std::string text = R"({"status":"success","data":[)";
  for (int i = first; i < first + count; ++i) {
    text += (i == first ? "" : ",") + (R"({"uuid":")" + std::to_string(i) + R"("})");
  }
  return text + "]" + (next.empty() ? "" : R"(,"next":")" + next + R"(")") + "}";
}

constexpr std::string_view kUnitsOfC1 =
    "/prefix/api/v1/"
    "units?field=uuid&field=started_at_ts&running&from=0&to=9999999999&cluster_id=c%201&limit=";

TEST_F(ApiOwnersTest, UnitsOfAUserAreReadInPages) {
  pages = {page_of(1, 3, "a+b"), page_of(3, 2, "c"), page_of(9, 0)};
  EXPECT_EQ(owners->units_of("alice", "c 1", kAllTimes, 100).value(),
            (UnitSet{"1", "2", "3", "4"}));
  const std::string first = std::string(kUnitsOfC1) + "101";
  EXPECT_EQ(targets,
            (std::vector<std::string>{first, first + "&cursor=a%2Bb", first + "&cursor=c"}));
  EXPECT_EQ(users, (std::vector<std::string>{"alice", "alice", "alice"}));
}

TEST_F(ApiOwnersTest, NoMoreUnitsOfAUserAreReadThanAskedFor) {
  pages = {page_of(1, 1000)};  // a server without pages gives everything at once
  EXPECT_EQ(owners->units_of("alice", "c 1", kAllTimes, 10).value().size(), 11U);
  EXPECT_EQ(owners->units_of("alice", "c 1", kAllTimes, 999).value().size(), 1000U);
  EXPECT_EQ(owners->units_of("alice", "c 1", kAllTimes, 1000).value().size(), 1000U);
  EXPECT_EQ(owners->units_of("alice", "c 1", kAllTimes, 1'000'000).value().size(), 1000U);
  EXPECT_EQ(targets.back(), std::string(kUnitsOfC1) + "5000");
  targets.clear();
  pages = {page_of(1, 6, "a"), page_of(7, 6, "b"), page_of(13, 6, "c")};
  EXPECT_EQ(owners->units_of("alice", "c 1", kAllTimes, 10).value().size(), 11U);
  EXPECT_EQ(targets.size(), 2U) << "a page that nobody needs was asked for";
}

TEST_F(ApiOwnersTest, OnlyUnitsThatLivedInTheAskedTimeAreOnesOwn) {
  pages = {R"({"status":"success","data":[{"uuid":"1","started_at_ts":1000},
               {"uuid":"2","started_at_ts":9001},{"uuid":"3"}]})"};
  EXPECT_EQ(owners->units_of("alice", "c 1", {.from_ms = 5'999, .to_ms = 9000}, 100).value(),
            (UnitSet{"1", "3"}));
  EXPECT_EQ(targets.back(),
            "/prefix/api/v1/units?field=uuid&field=started_at_ts&running&from=5&to=9999999999"
            "&cluster_id=c%201&limit=101");
}

TEST_F(ApiOwnersTest, HalfOfTheUnitsIsAsGoodAsNone) {
  pages = {page_of(1, 3, "a"), "{}"};
  EXPECT_FALSE(owners->units_of("alice", "c", kAllTimes, 100));
  targets.clear();
  pages = {page_of(1, 3, "a")};  // the same page for ever
  EXPECT_FALSE(owners->units_of("alice", "c", kAllTimes, 100));
  EXPECT_EQ(targets.size(), 20U);
}

TEST_F(ApiOwnersTest, UnitsOfOthersWithTheSameIdAreAskedForAsAnAdmin) {
  pages = {R"({"status":"success","data":[{"name":"fluids"},{"name":"optics"}]})",
           R"({"status":"success","next":"n","data":[
               {"uuid":"1","username":"bob","project":"fluids","created_at_ts":4999,"started_at_ts":5000},
               {"uuid":"2","username":"bob","project":"optics","started_at_ts":7000,"ended_at_ts":8000}]})",
           R"({"status":"success","data":[{"uuid":"1","username":"eve","project":"secret",
               "created_at_ts":900,"started_at_ts":1000,"ended_at_ts":2000}]})"};
  const auto ids = owners->shared_ids("alice", "c 1", {"1", "2"});
  ASSERT_TRUE(ids);
  ASSERT_EQ(ids->size(), 1U);
  EXPECT_EQ(ids->at("1").own, (std::vector<promql::TimeSpan>{{5000, kFarTime}}));
  EXPECT_EQ(ids->at("1").others, (std::vector<promql::TimeSpan>{{1000, 2000}}));
  const std::string second =
      "/prefix/api/v1/units/admin?field=uuid&field=username&field=project&field=created_at_ts"
      "&field=started_at_ts&field=ended_at_ts&running&from=0&to=9999999999&cluster_id=c%201"
      "&limit=5000&uuid=1&uuid=2";
  EXPECT_EQ(targets, (std::vector<std::string>{"/prefix/api/v1/projects?cluster_id=c%201", second,
                                               second + "&cursor=n"}));
  EXPECT_EQ(users, (std::vector<std::string>{"alice", "ceems-int-svc", "ceems-int-svc"}));
}

TEST_F(ApiOwnersTest, UnitsOfAProjectThatTheUserLeftStayOwn) {
  pages = {R"({"status":"success","data":[]})", R"({"status":"success","data":[
               {"uuid":"1","username":"alice","project":"fluids","started_at_ts":5000},
               {"uuid":"1","username":"bob","project":"fluids","started_at_ts":1000,
                "ended_at_ts":2000}]})"};
  const auto ids = owners->shared_ids("alice", "c", {"1"});
  ASSERT_TRUE(ids);
  ASSERT_EQ(ids->count("1"), 1U);
  EXPECT_EQ(ids->at("1").own, (std::vector<promql::TimeSpan>{{5000, kFarTime}}));
  EXPECT_EQ(ids->at("1").others, (std::vector<promql::TimeSpan>{{1000, 2000}}));
}

TEST_F(ApiOwnersTest, UnitsThatCannotBeReadTellNothing) {
  const std::string projects = R"({"status":"success","data":[{"name":"fluids"}]})";
  for (const char* rows :
       {R"([{"uuid":"1"}])", R"([{"project":"p"}])", R"([{"uuid":1,"username":"u","project":"p"}])",
        R"([{"uuid":"1","project":"p"}])",
        R"([{"uuid":"1","username":"u","project":"p","ended_at_ts":"x"}])", "[1]", "{}"}) {
    targets.clear();
    pages = {projects, R"({"status":"success","data":)" + std::string(rows) + "}"};
    EXPECT_FALSE(owners->shared_ids("alice", "c", {"1"})) << rows;
  }
  targets.clear();
  pages = {projects, projects};
  refused = 2;
  EXPECT_FALSE(owners->shared_ids("alice", "c", {"1"}));
  targets.clear();
  refused = 1;
  EXPECT_FALSE(owners->shared_ids("alice", "c", {"1"}));
}

}  // namespace
}  // namespace ceems::gate
