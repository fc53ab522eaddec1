// What people say of suggestions, through the API.
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "audit/log.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kRun = "units/feedback?cluster_id=hpc-a&uuid=";

/// Runs 1 (ada), 2 (bob) and 3 (eve) of hpc-a have two suggestions, "good" besides. ada leads the
/// project of eve.
class FeedbackEndpoint : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    auto log = audit::Log::open({.file = audit_file()}, "ceems_api_server", clock_);
    ASSERT_TRUE(log);
    log_ = std::move(*log);
    const access::Roles::Leads leads{.cluster_id = "hpc-a", .project = "optics", .users = {"ada"}};
    tokens_ = make_tokens({.roles = {.project_leads = {leads}}});
    ApiOptions options{.tokens = tokens_.get(), .audit = log_.get()};
    options.roles.project_leads = {leads};
    options.roles.support = {"sue"};
    make(std::move(options));
    for (const std::string uuid : {"1", "2", "3"}) {
      store_findings(uuid);
    }
  }

  void store_findings(const std::string& uuid) {
    store::ReportRow row{
        .key = {"hpc-a", uuid, kNow - kHour}, .ended_at_ts = kNow - kHour / 2, .final = true};
    for (const std::string rule : {"mem-excess", "good", "cpu-low"}) {
      row.findings.push_back({.rule = rule, .numbers = "{}"});
    }
    ASSERT_EQ(db_->writer().store_reports({row}).value(), 1U);
  }

  [[nodiscard]] std::string audit_file() const { return (dir_.path() / "audit.log").string(); }
  [[nodiscard]] std::string audited() const {
    std::ifstream in(audit_file());
    return {std::istreambuf_iterator<char>(in), {}};
  }

  net::Response post(const std::string& target, std::string_view body, net::Headers headers) {
    net::Request asked = request_for("POST", "/api/v1/" + target, std::move(headers));
    asked.body = body;
    net::Response response;
    server_->handle(asked, response);
    return response;
  }
  int say(const std::string& user,
          const std::string& uuid,
          const std::string& rule,
          const std::string& answer) {
    return post(std::string(kRun) + uuid,
                fmt::format(R"({{"rule":"{}","answer":"{}"}})", rule, answer),
                {{"X-Grafana-User", user}, {"Content-Type", "application/json"}})
        .status;
  }
  /// What the user said, as a list of JSON.
  std::string said(const std::string& user, const std::string& uuid) {
    return body(std::string(kRun) + uuid, user);
  }

  std::unique_ptr<audit::Log> log_;
};

TEST_F(FeedbackEndpoint, EachPersonHasOneAnswerThatCanBeChanged) {
  const std::string none =
      R"("data":[{"rule":"cpu-low","answer":null},{"rule":"mem-excess","answer":null}])";
  EXPECT_THAT(said("ada", "1"), HasSubstr(none));
  EXPECT_EQ(say("ada", "1", "mem-excess", "no"), 200);
  EXPECT_EQ(say("ada", "1", "cpu-low", "not_applicable"), 200);
  EXPECT_EQ(say("ada", "1", "mem-excess", "yes"), 200);
  EXPECT_THAT(said("ada", "1"), HasSubstr(R"("data":[{"rule":"cpu-low","answer":"not_applicable"},)"
                                          R"({"rule":"mem-excess","answer":"yes"}])"));
  EXPECT_EQ(text("SELECT count(*) FROM ceems_feedback"), "2");
  EXPECT_EQ(text("SELECT answered_ms FROM ceems_feedback WHERE rule = 'cpu-low'"),
            std::to_string(clock_.now_ms()));
}

TEST_F(FeedbackEndpoint, IsForOwnAndLedUnitsOnly) {
  EXPECT_EQ(say("ada", "2", "cpu-low", "no"), 404);
  EXPECT_EQ(say("ada", "3", "cpu-low", "no"), 200);  // led
  EXPECT_EQ(say("eve", "3", "cpu-low", "yes"), 200);
  EXPECT_THAT(said("ada", "3"), HasSubstr(R"("rule":"cpu-low","answer":"no")"));
  EXPECT_THAT(said("eve", "3"), HasSubstr(R"("rule":"cpu-low","answer":"yes")"));
  for (const std::string other : {"bob", "root", "sue"}) {
    EXPECT_EQ(say(other, "3", "cpu-low", "no"), 404) << other;
    EXPECT_EQ(get(fmt::format("/api/v1/{}3", kRun), other).status, 404) << other;
  }
  EXPECT_EQ(say("", "3", "cpu-low", "no"), 401);
  EXPECT_EQ(text("SELECT count(*) FROM ceems_feedback"), "2");
}

TEST_F(FeedbackEndpoint, IsAboutSuggestionsOfTheRun) {
  EXPECT_EQ(say("ada", "1", "oom", "no"), 404);
  EXPECT_EQ(say("ada", "1", "good", "no"), 404);
  EXPECT_EQ(say("ada", "1", "", "no"), 404);
  EXPECT_EQ(say("ada", "1&start=5", "cpu-low", "no"), 404);
  EXPECT_EQ(say("ada", "10", "cpu-low", "no"), 404);  // it runs, and has no report
  EXPECT_THAT(said("ada", "10"), HasSubstr(R"("data":[])"));
  EXPECT_EQ(say("ada", fmt::format("1&start={}", kNow - kHour), "cpu-low", "no"), 200);
  EXPECT_EQ(text("SELECT count(*) FROM ceems_feedback"), "1");
}

TEST_F(FeedbackEndpoint, RefusesWhatIsNotAnAnswer) {
  const net::Headers sent{{"X-Grafana-User", "ada"}, {"Content-Type", "application/json"}};
  const std::string run = std::string(kRun) + "1";
  for (const std::string& wrong :
       {std::string(), std::string("[]"), std::string(R"({"rule":"cpu-low"})"),
        std::string(R"({"rule":"cpu-low","answer":"maybe"})"),
        std::string(R"({"rule":7,"answer":"no"})"), std::string(R"({"rule":"cpu-low","answer":1})"),
        std::string(R"({"rule":"cpu-low","answer":"no","user":"bob"})"),
        fmt::format(R"({{"rule":"{:x>5000}","answer":"no"}})", "")}) {
    EXPECT_EQ(post(run, wrong, sent).status, 400) << wrong.substr(0, 80);
  }
  const std::string_view good = R"({"rule":"cpu-low","answer":"no"})";
  EXPECT_EQ(post("units/feedback?uuid=1", good, sent).status, 400);
  EXPECT_EQ(post("units/feedback?cluster_id=hpc-a", good, sent).status, 400);
  EXPECT_EQ(post(run + "&uuid=10", good, sent).status, 400);
  EXPECT_EQ(post(run + "&start=x", good, sent).status, 400);
  EXPECT_EQ(post(run, good, {{"X-Grafana-User", "ada"}, {"Content-Type", "text/plain"}}).status,
            400);
  net::Headers foreign = sent;
  foreign.emplace_back("Sec-Fetch-Site", "cross-site");
  EXPECT_EQ(post(run, good, foreign).status, 403);
  foreign.back() = {"Origin", "https://evil.example"};
  EXPECT_EQ(post(run, good, foreign).status, 403);
  EXPECT_EQ(text("SELECT count(*) FROM ceems_feedback"), "0");
}

TEST_F(FeedbackEndpoint, TokensMayReadAnswersAndNotGiveThem) {
  ASSERT_EQ(say("ada", "1", "cpu-low", "no"), 200);
  const auto made = tokens_->make("ada", "cron", access::TokenScope::kOwn, std::nullopt);
  ASSERT_TRUE(made && *made);
  const net::Headers token{{"Authorization", "Bearer " + (*made)->secret},
                           {"Content-Type", "application/json"}};
  const std::string run = std::string(kRun) + "1";
  EXPECT_EQ(post(run, R"({"rule":"cpu-low","answer":"yes"})", token).status, 403);
  EXPECT_THAT(request("GET", "/api/v1/" + run, token).body, HasSubstr(R"("answer":"no")"));
}

TEST_F(FeedbackEndpoint, LeavesALineInTheAudit) {
  ASSERT_EQ(say("ada", "3", "cpu-low", "no"), 200);
  EXPECT_THAT(audited(), HasSubstr(R"("event":"changed","user":"ada")"));
  EXPECT_THAT(audited(),
              HasSubstr(R"("reason":"suggestion_answered","endpoint":["units/feedback"],)"
                        R"("cluster_id":["hpc-a"],"of_user":["eve"],"uuid":["3"])"));
}

TEST_F(FeedbackEndpoint, SharesOfARuleNeedAnswersOfFivePeople) {
  const auto opened = db_->open_feedback();
  ASSERT_TRUE(opened);
  const auto answer = [&](const std::string& rule, const std::string& user, const std::string& what,
                          const std::string& uuid = "1") {
    EXPECT_TRUE((*opened)->answer({.key = {"hpc-a", uuid, kNow - kHour},
                                   .rule = rule,
                                   .username = user,
                                   .answer = what,
                                   .answered_ms = kNow}));
  };
  for (const std::string user : {"a", "b", "c", "d"}) {
    answer("cpu-low", user, "no");
    answer("mem-excess", user, "no");
  }
  answer("cpu-low", "a", "no", "2");  // a fifth answer is not that of a fifth person
  answer("mem-excess", "a", "not_applicable", "2");
  answer("mem-excess", "e", "yes");
  for (const std::string user : {"root", "sue"}) {
    EXPECT_THAT(body("insight/feedback/admin", user),
                HasSubstr(R"("data":[{"rule":"mem-excess","answers":6,"people":5,"no":4,)"
                          R"("not_applicable":1,"false_share":0.833}])"));
  }
  EXPECT_EQ(get("/api/v1/insight/feedback/admin", "ada").status, 403);
  EXPECT_EQ(get("/api/v1/insight/feedback/admin").status, 401);
}

}  // namespace
}  // namespace ceems::api
