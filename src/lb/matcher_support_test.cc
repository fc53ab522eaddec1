#include "lb/matcher_support.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "net/http.h"
#include "testing/fake_clock.h"

namespace ceems::lb {
namespace {

/// A stand-in for a Pyroscope server with one profile, of service `other`.
class FakeServer {
 public:
  Result<std::string> answer(std::string_view method, std::string_view call) {
    calls.emplace_back(call);
    if (broken) {
      return fail(ErrorCode::kUnavailable, "down");
    }
    if (garbage) {
      return "<html>";
    }
    const bool everything = ignores_matchers || call.contains(R"("{}")");
    if (!everything || empty || (only_old && calls.size() <= 4)) {
      return "{}";
    }
    return method == "Series" ? R"({"labelsSet":[{"labels":[]}]})" : R"({"names":["other"]})";
  }

  std::vector<std::string> calls;
  bool ignores_matchers = false;
  bool empty = false;
  bool only_old = false;  ///< no profiles of the last day
  bool broken = false;
  bool garbage = false;
};

class MatcherSupportTest : public ::testing::Test {
 protected:
  FakeServer server;
  testing::FakeClock clock;
  MatcherSupport support{[this](std::string_view method, std::string_view call) {
                           return server.answer(method, call);
                         },
                         clock};
};

TEST_F(MatcherSupportTest, AServerThatHonoursThemIsAskedOnce) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(support.allows("LabelNames"));
    EXPECT_EQ(server.calls.size(), 2U);
  }
  EXPECT_TRUE(server.calls[0].contains("ceems_lb asks"));
  EXPECT_TRUE(server.calls[1].contains(R"("matchers":["{}"])"));
  EXPECT_TRUE(support.allows("LabelValues"));
  EXPECT_TRUE(server.calls[2].contains(R"("name":"service_name")"));
  EXPECT_TRUE(support.allows("Series"));
  EXPECT_EQ(server.calls.size(), 6U);
  clock.advance(std::chrono::minutes(61));
  server.ignores_matchers = true;
  EXPECT_FALSE(support.allows("LabelNames")) << "another server may answer by now";
}

TEST_F(MatcherSupportTest, AnOldServerIsRefusedUntilItIsUpdated) {
  server.ignores_matchers = true;
  for (const char* method : {"LabelNames", "LabelValues", "Series"}) {
    EXPECT_FALSE(support.allows(method)) << method;
    EXPECT_FALSE(support.allows(method)) << method;
  }
  EXPECT_EQ(server.calls.size(), 3U);
  server.ignores_matchers = false;
  EXPECT_FALSE(support.allows("LabelNames"));
  clock.advance(std::chrono::seconds(61));
  EXPECT_TRUE(support.allows("LabelNames"));
}

TEST_F(MatcherSupportTest, CallsWithALabelSelectorNeedNoQuestion) {
  server.ignores_matchers = true;
  for (const char* method : {"SelectSeries", "SelectMergeStacktraces", "Diff", "ProfileTypes"}) {
    EXPECT_TRUE(support.allows(method)) << method;
  }
  EXPECT_TRUE(server.calls.empty());
}

TEST_F(MatcherSupportTest, WhatIsNotKnownIsRefused) {
  server.empty = true;
  EXPECT_FALSE(support.allows("LabelNames")) << "an empty server shows nothing";
  EXPECT_EQ(server.calls.size(), 6U) << "of an hour, a day and a month";
  server.empty = false;
  server.broken = true;
  clock.advance(std::chrono::seconds(6));
  EXPECT_FALSE(support.allows("LabelNames"));
  EXPECT_FALSE(support.allows("LabelNames"));
  EXPECT_EQ(server.calls.size(), 7U) << "not asked again at once";
  server.broken = false;
  server.garbage = true;
  clock.advance(std::chrono::seconds(6));
  EXPECT_FALSE(support.allows("LabelNames"));
  server.garbage = false;
  clock.advance(std::chrono::seconds(6));
  EXPECT_TRUE(support.allows("LabelNames"));
}

/// A stand-in for a TSDB.
TEST(MatcherSupportOfTsdbs, DecidesLabelsAndTheirValues) {
  testing::FakeClock clock;
  std::vector<std::string> calls;
  bool ignores = false;
  bool empty = false;
  bool broken = false;
  MatcherSupport support(
      [&](std::string_view method, std::string_view call) -> Result<std::string> {
        calls.push_back(std::string(method) + "?" + std::string(call));
        if (broken) {
          return fail(ErrorCode::kUnavailable, "down");
        }
        const bool all = ignores || !call.contains("match[]=");
        return all && !empty ? R"({"status":"success","data":["up"]})"
                             : R"({"status":"success","data":[]})";
      },
      clock);
  EXPECT_TRUE(support.allows("query")) << "a server that ignored it would be no TSDB";
  EXPECT_TRUE(calls.empty());
  EXPECT_TRUE(support.allows("labels"));
  EXPECT_TRUE(support.allows("values"));
  EXPECT_EQ(calls.size(), 10U);
  EXPECT_TRUE(calls[0].starts_with("labels?start="));
  EXPECT_TRUE(calls[0].contains("&match[]=%7Bservice_name%3D"));
  EXPECT_TRUE(calls[3].starts_with("labels?start=") &&
              calls[3].contains("&match[]=up%7Bservice_name%3D"))
      << calls[3];
  EXPECT_TRUE(calls[4].starts_with("label/uuid/values?start=")) << calls[4];
  EXPECT_TRUE(support.allows("labels"));
  EXPECT_EQ(calls.size(), 10U);
  ignores = true;
  clock.advance(std::chrono::minutes(61));
  EXPECT_FALSE(support.allows("labels"));
  EXPECT_FALSE(support.allows("values"));
  empty = true;
  clock.advance(std::chrono::seconds(61));
  EXPECT_TRUE(support.allows("labels")) << "there is nothing to give away";
  empty = false;
  clock.advance(std::chrono::seconds(6));
  EXPECT_FALSE(support.allows("labels"));
  broken = true;
  clock.advance(std::chrono::seconds(61));
  EXPECT_FALSE(support.allows("labels"));
}

TEST(MatcherSupportOfTsdbs, RefusesServersThatLookAtTheNameOnly) {
  testing::FakeClock clock;
  bool honours_names = false;
  MatcherSupport support(
      [&](std::string_view method, std::string_view call) -> Result<std::string> {
        const bool named = call.contains("match[]=up");
        const bool of_units = method == "label/uuid/values";
        const bool found = !call.contains("match[]=") || (named && (!honours_names || of_units));
        return found ? R"({"status":"success","data":["up"]})"
                     : R"({"status":"success","data":[]})";
      },
      clock);
  EXPECT_FALSE(support.allows("labels"));
  EXPECT_FALSE(support.allows("values"));
  honours_names = true;
  clock.advance(std::chrono::minutes(2));
  EXPECT_FALSE(support.allows("values")) << "the values of other labels are not confined";
}

TEST(MatcherSupportOfTsdbs, RefusesSeriesWhereTheyAloneAreNotConfined) {
  testing::FakeClock clock;
  std::string_view ignored = "{";
  std::vector<std::string> calls;
  MatcherSupport support(
      [&](std::string_view method, std::string_view call) -> Result<std::string> {
        calls.push_back(std::string(method) + "?" + std::string(call));
        if (method == "series") {
          const bool found = call.contains("match[]=" + net::url_encode(ignored));
          return found ? R"({"data":[{"__name__":"up","uuid":"1"}]})" : R"({"data":[]})";
        }
        return call.contains("match[]=") ? R"({"data":[]})" : R"({"data":["up"]})";
      },
      clock);
  EXPECT_FALSE(support.allows("series"));
  EXPECT_EQ(calls.size(), 1U);
  EXPECT_TRUE(support.allows("labels"));
  ignored = "up{";
  clock.advance(std::chrono::seconds(61));
  EXPECT_FALSE(support.allows("series")) << "only the name is looked at";
  ignored = "nothing";
  clock.advance(std::chrono::seconds(61));
  calls.clear();
  EXPECT_TRUE(support.allows("series"));
  ASSERT_EQ(calls.size(), 5U);
  EXPECT_TRUE(calls[1].starts_with("labels?start=")) << calls[1];
  EXPECT_TRUE(calls[3].starts_with("series?start=")) << calls[3];
  EXPECT_TRUE(
      std::ranges::none_of(calls, [](const std::string& call) { return call == "series?"; }));
}

TEST(MatcherSupportOfTsdbs, SeriesOfLastYearAreNotGivenAway) {
  testing::FakeClock clock;
  MatcherSupport support(
      [](std::string_view, std::string_view call) -> Result<std::string> {
        return call.contains("start=") ? R"({"status":"success","data":[]})"
                                       : R"({"status":"success","data":["up"]})";
      },
      clock);
  EXPECT_FALSE(support.allows("labels"));
  EXPECT_FALSE(support.allows("values"));
}

/// A stand-in for VictoriaMetrics, or for a proxy in front of it.
class ExtraFiltersTest : public ::testing::Test {
 protected:
  Result<std::string> answer(std::string_view method, std::string_view call) {
    calls.push_back(std::string(method) + "?" + std::string(call));
    if (!metricsql && call.contains("WITH")) {
      return fail(ErrorCode::kUnavailable, "the server answered 400");
    }
    const bool applies = method == "query" ? in_queries : in_labels;
    const bool some = !empty && !(applies && call.contains("&extra_filters%5B%5D="));
    if (method == "query") {
      return some ? R"({"data":{"resultType":"vector","result":[{"metric":{}}]}})"
                  : R"({"data":{"resultType":"vector","result":[]}})";
    }
    return some ? R"({"data":["up"]})" : R"({"data":[]})";
  }
  [[nodiscard]] bool allows() { return support.allows(MatcherSupport::kExtraFilters); }

  testing::FakeClock clock;
  std::vector<std::string> calls;
  bool metricsql = true;
  bool in_queries = true;
  bool in_labels = true;
  bool empty = false;
  MatcherSupport support{
      [this](std::string_view method, std::string_view call) { return answer(method, call); },
      clock};
};

TEST_F(ExtraFiltersTest, AreAskedForEachMinute) {
  EXPECT_TRUE(allows());
  ASSERT_EQ(calls.size(), 4U);
  EXPECT_EQ(calls[1], "query?query=WITH%20%28%29%20count%28up%29");
  EXPECT_TRUE(calls[0].starts_with(calls[1] + "&extra_filters%5B%5D=%7Bservice_name%3D"));
  EXPECT_TRUE(calls[3].starts_with("labels?start="));
  EXPECT_TRUE(calls[3].ends_with("&match[]=WITH%20%28%29%20%7B__name__%21%3D%22%22%7D"));
  clock.advance(std::chrono::seconds(59));
  EXPECT_TRUE(allows());
  EXPECT_EQ(calls.size(), 4U);
  in_queries = false;
  clock.advance(std::chrono::seconds(2));
  EXPECT_FALSE(allows()) << "a proxy has other filters by now";
  in_queries = true;
  EXPECT_FALSE(allows());
  clock.advance(std::chrono::seconds(61));
  EXPECT_TRUE(allows());
  for (const auto method : MatcherSupport::methods(true)) {
    EXPECT_NE(method, MatcherSupport::kExtraFilters) << "servers of other kinds are not asked";
  }
}

TEST_F(ExtraFiltersTest, MustCountEverywhere) {
  in_labels = false;
  EXPECT_FALSE(allows());
  in_labels = true;
  in_queries = false;
  clock.advance(std::chrono::seconds(61));
  EXPECT_FALSE(allows());
}

TEST_F(ExtraFiltersTest, AreNotTrustedWhileTheyAreNotSeenToCount) {
  empty = true;
  EXPECT_FALSE(allows()) << "an empty server shows nothing";
  empty = false;
  metricsql = false;
  clock.advance(std::chrono::seconds(6));
  EXPECT_FALSE(allows()) << "Prometheus";
  metricsql = true;
  EXPECT_FALSE(allows());
  clock.advance(std::chrono::seconds(6));
  EXPECT_TRUE(allows());
}

TEST_F(MatcherSupportTest, IsRenewedBeforeARequestHasToWait) {
  support.renew("LabelNames");
  EXPECT_EQ(server.calls.size(), 2U);
  EXPECT_TRUE(support.allows("LabelNames"));
  clock.advance(std::chrono::minutes(49));
  support.renew("LabelNames");
  EXPECT_EQ(server.calls.size(), 2U);
  clock.advance(std::chrono::minutes(2));
  server.broken = true;
  support.renew("LabelNames");
  EXPECT_EQ(server.calls.size(), 3U);
  EXPECT_TRUE(support.allows("LabelNames")) << "what was known stays for its hour";
  server.broken = false;
  server.ignores_matchers = true;
  support.renew("LabelNames");
  EXPECT_FALSE(support.allows("LabelNames"));
  EXPECT_EQ(server.calls.size(), 4U);
  server.ignores_matchers = false;
  support.renew("LabelNames");
  EXPECT_TRUE(support.allows("LabelNames"));
  EXPECT_EQ(server.calls.size(), 6U);
  clock.advance(std::chrono::minutes(61));
  server.broken = true;
  support.renew("LabelNames");
  EXPECT_FALSE(support.allows("LabelNames"));
}

TEST_F(MatcherSupportTest, WhatIsUnknownAtTheStartIsAskedByTheNextRequest) {
  server.empty = true;
  support.renew("LabelNames");
  server.empty = false;
  EXPECT_TRUE(support.allows("LabelNames"));
}

TEST_F(MatcherSupportTest, ProfilesOfThisMonthSuffice) {
  server.only_old = true;
  EXPECT_TRUE(support.allows("LabelNames"));
  EXPECT_EQ(server.calls.size(), 6U);
}

}  // namespace
}  // namespace ceems::lb
