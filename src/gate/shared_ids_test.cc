#include "gate/shared_ids.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/wire_format.h"
#include "gate/gate.h"
#include "testing/fake_clock.h"

namespace ceems::gate {
namespace {

using promql::Reach;
using promql::TimeSpan;
using Spans = std::vector<TimeSpan>;

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kHour = 60 * kMinute;

TEST(SharedIds, AreThoseThatOthersHadToo) {
  const auto ids = shared_ids_among({{.uuid = "2", .in_scope = true, .started_ms = 5},
                                     {.uuid = "1", .in_scope = true, .started_ms = 500},
                                     {.uuid = "1", .started_ms = 100, .ended_ms = 200},
                                     {.uuid = "1", .created_ms = 300},
                                     {.uuid = "3", .created_ms = 7, .ended_ms = 9},
                                     {.uuid = "4", .created_ms = 8}});
  ASSERT_EQ(ids.size(), 3U);
  EXPECT_EQ(ids.at("1").own, (Spans{{500, kFarTime}}));
  // A unit without a recorded end is over when the next one starts.
  EXPECT_EQ(ids.at("1").others, (Spans{{100, 200}, {300, 499}}));
  EXPECT_EQ(ids.at("3").others, (Spans{{9, 9}}));
  EXPECT_EQ(ids.at("4").others, (Spans{{8, kFarTime}}));
}

TEST(SharedIds, OwnPartsAreTheLivesOneByOneWithoutOthers) {
  const Evaluation all{.start_ms = 0, .end_ms = 100 * kHour, .step_ms = kMinute};
  const auto parts = [&](const SharedId& lives, TimeSpan around = {}, std::int64_t lookback = 0) {
    std::vector<TimeSpan> spans;
    for (const Evaluation& part : own_parts(all, around, lookback, lives)) {
      EXPECT_EQ(part.start_ms % kMinute, 0);
      EXPECT_EQ(part.step_ms, kMinute);
      spans.push_back({part.start_ms / kMinute, part.end_ms / kMinute});
    }
    return spans;
  };
  const SharedId two{.own = {{10 * kHour, 11 * kHour}, {20 * kHour, 21 * kHour}}};
  EXPECT_EQ(parts(two), (Spans{{599, 661}, {1199, 1261}}));
  SharedId shared = two;
  shared.others = {{15 * kHour, 16 * kHour}};
  EXPECT_EQ(parts(shared), (Spans{{599, 661}, {1199, 1261}}));
  // Neither the range of a rate nor the look-back reaches into the life of somebody else.
  shared.others = {{11 * kHour, 20 * kHour - 1}};
  EXPECT_EQ(parts(shared, {-4 * kMinute, 0}, 5 * kMinute), (Spans{{599, 658}, {1210, 1261}}));
  shared.others = {{0, kFarTime}};
  EXPECT_TRUE(parts(shared).empty());
  EXPECT_TRUE(parts({.others = two.own}).empty());
  EXPECT_EQ(parts({.own = {{99 * kHour, kFarTime}, {99 * kHour + kMinute, kFarTime}}}),
            (Spans{{5939, 6000}}));
}

/// Somebody else's unit from 10 h to 12 h, the own one from 20 h to 21 h.
const SharedIds& shared() {
  static const SharedIds ids = {
      {"7", {.own = {{20 * kHour, 21 * kHour}}, .others = {{10 * kHour, 12 * kHour}}}}};
  return ids;
}

std::optional<Evaluation> narrow(Evaluation requested,
                                 const Reach& reach,
                                 std::int64_t lookback = 0) {
  return narrowed(requested, reach, lookback, shared());
}

TEST(Narrowed, TimesWithoutOthersStayAsTheyAre) {
  const Evaluation requested{.start_ms = 13 * kHour, .end_ms = 30 * kHour, .step_ms = 7};
  EXPECT_EQ(narrow(requested, {.around = TimeSpan{}}), requested);
  EXPECT_EQ(narrow(requested, {.around = TimeSpan{-kHour + 2 * kMinute, 0}}), requested);
  EXPECT_EQ(narrow(requested, {}), requested);
  const Evaluation before{.start_ms = 1, .end_ms = 2 * kHour};
  EXPECT_EQ(narrow(before, {.around = TimeSpan{0, 7 * kHour}}), before);
}

TEST(Narrowed, ThePartAroundTheOwnUnitIsLeft) {
  const Evaluation requested{.start_ms = 0, .end_ms = 30 * kHour, .step_ms = kHour};
  EXPECT_EQ(narrow(requested, {.around = TimeSpan{}}),
            (Evaluation{.start_ms = 13 * kHour, .end_ms = 30 * kHour, .step_ms = kHour}));
  // Reading five hours back, and looking back one more.
  EXPECT_EQ(narrow(requested, {.around = TimeSpan{-5 * kHour, 0}}, kHour),
            (Evaluation{.start_ms = 19 * kHour, .end_ms = 30 * kHour, .step_ms = kHour}));
  // Two hours into the future, so the own unit comes earlier, and so do the others.
  EXPECT_EQ(narrow(requested, {.around = TimeSpan{2 * kHour, 2 * kHour}}),
            (Evaluation{.start_ms = 11 * kHour, .end_ms = 30 * kHour, .step_ms = kHour}));
  // Without the own unit, the rest is useless.
  const Evaluation early{.start_ms = 0, .end_ms = 15 * kHour, .step_ms = kHour};
  EXPECT_EQ(narrow(early, {.around = TimeSpan{}}), std::nullopt);
  // Times are steps from the start: 0 h, 11 h, 22 h; the last reads the own unit or nothing.
  const Evaluation coarse{.start_ms = 0, .end_ms = 22 * kHour, .step_ms = 11 * kHour};
  EXPECT_EQ(narrow(coarse, {.around = TimeSpan{-2 * kHour, 0}}),
            (Evaluation{.start_ms = 22 * kHour, .end_ms = 22 * kHour, .step_ms = 11 * kHour}));
  EXPECT_EQ(narrow(coarse, {.around = TimeSpan{}}), std::nullopt);
  EXPECT_EQ(narrow(coarse, {.around = TimeSpan{-11 * kHour, 0}}), std::nullopt);
}

TEST(Narrowed, AnOwnUnitBeforeTheOthersIsLeftToo) {
  const SharedIds ids = {{"7", {.own = {{kHour, 2 * kHour}}, .others = {{10 * kHour, kFarTime}}}}};
  const Evaluation requested{.start_ms = 0, .end_ms = 30 * kHour, .step_ms = kHour};
  EXPECT_EQ(narrowed(requested, {.around = TimeSpan{}}, 0, ids),
            (Evaluation{.start_ms = 0, .end_ms = 10 * kHour - kMinute - 1, .step_ms = kHour}));
}

TEST(Narrowed, FixedTimesAreNotMoved) {
  const Evaluation requested{.start_ms = 20 * kHour, .end_ms = 30 * kHour, .step_ms = kHour};
  EXPECT_EQ(narrow(requested, {.fixed = TimeSpan{11 * kHour, 11 * kHour}}), std::nullopt);
  EXPECT_EQ(narrow(requested, {.fixed = TimeSpan{12 * kHour + kMinute, 13 * kHour}}), std::nullopt);
  EXPECT_EQ(narrow(requested, {.fixed = TimeSpan{13 * kHour, 14 * kHour}}), requested);
  EXPECT_EQ(narrow(requested, {.fixed = TimeSpan{13 * kHour, 14 * kHour}}, kHour), std::nullopt);
  EXPECT_EQ(narrow(requested, {.at_start = TimeSpan{-9 * kHour, 0}}), std::nullopt);
  EXPECT_EQ(narrow(requested, {.at_start = TimeSpan{-7 * kHour, 0}}), requested);
  EXPECT_EQ(narrow(requested, {.at_end = TimeSpan{-18 * kHour, -18 * kHour}}), std::nullopt);
  // A part of the times would have another start.
  const Evaluation wide{.start_ms = 0, .end_ms = 30 * kHour, .step_ms = kHour};
  EXPECT_EQ(narrow(wide, {.around = TimeSpan{}, .at_start = TimeSpan{}}), std::nullopt);
  EXPECT_EQ(narrow(wide, {.around = TimeSpan{}, .at_end = TimeSpan{}}), std::nullopt);
}

TEST(Narrowed, FarTimesAreNoOverflow) {
  using Limits = std::numeric_limits<std::int64_t>;
  const SharedIds ids = {{"7", {.own = {{0, kFarTime}}, .others = {{5, kFarTime}}}}};
  const Evaluation all{.start_ms = -kFarTime, .end_ms = kFarTime, .step_ms = kFarTime};
  for (const std::int64_t from : {Limits::min(), -kFarTime, std::int64_t{0}, Limits::max()}) {
    for (const std::int64_t to : {Limits::min(), std::int64_t{0}, kFarTime, Limits::max()}) {
      const TimeSpan span{std::min(from, to), std::max(from, to)};
      EXPECT_FALSE(narrowed(all, {.fixed = TimeSpan{Limits::min(), Limits::max()}}, 0, ids));
      const auto left = narrowed(all, {.around = span, .at_end = span}, kFarTime, ids);
      EXPECT_TRUE(!left || *left == all);
    }
  }
}

/// alice owns 7 and 8; 7 was somebody else's before.
class SharingOwners final : public Owners {
 public:
  Result<bool> is_admin(const std::string& user) override { return user == "root"; }
  Result<bool> may_see(const std::string& /*user*/,
                       const std::string& /*cluster*/,
                       const UnitSet& units) override {
    return units == UnitSet{"7"} || units == UnitSet{"8"} || units == UnitSet{"7", "8"};
  }
  Result<UnitSet> units_of(const std::string& /*user*/,
                           const std::string& /*cluster*/,
                           const promql::TimeSpan& /*alive*/,
                           std::size_t /*limit*/) override {
    return UnitSet{"7", "8"};
  }
  Result<SharedIds> shared_ids(const std::string& /*user*/,
                               const std::string& /*cluster*/,
                               const UnitSet& units) override {
    if (broken) {
      return fail(ErrorCode::kUnavailable, "away");
    }
    return units.contains("7") ? ids : SharedIds{};
  }
  SharedIds ids = shared();
  bool broken = false;
};

class LifetimesTest : public ::testing::Test {
 protected:
  LifetimesTest() { clock.step_to(Clock::SystemTime(std::chrono::milliseconds(30 * kHour))); }

  Checked<Decision> send(BackendType type, const RawRequest& raw, const std::string& user) {
    const net::Headers headers = {{"X-Grafana-User", user}, {"X-Ceems-Cluster-Id", "c"}};
    const Gate gate(type, rules, &owners, clock);
    const ParsedRequest request(raw);
    auto decided = gate.decide(request, headers);
    const auto remembering = cached_owners(owners, clock);
    const Gate warm(type, rules, remembering.get(), clock);
    (void)warm.decide(request, headers);
    if (const auto inline_decision = warm.decide_inline(request, headers)) {
      EXPECT_TRUE(decided);
      EXPECT_EQ(inline_decision->forward.query, decided->forward.query);
    }
    return decided;
  }

  /// The parameters that go on but the query, or status and reason.
  std::string ask(const std::string& path, const std::string& query, const std::string& rest = {}) {
    const bool matches = path != "query" && path != "query_range" && path != "query_exemplars";
    const std::string target =
        "/api/v1/" + path + (matches ? "?match[]=" : "?query=") + net::url_encode(query) + rest;
    const auto decided = send(BackendType::kTsdb, {.method = "GET", .target = target}, "alice");
    if (!decided) {
      return std::to_string(decided.error().status) + " " + std::string(decided.error().reason);
    }
    const std::string& text = decided->forward.query;
    const std::size_t end = text.find('&');
    return end == std::string::npos ? "" : text.substr(end + 1);
  }

  SharingOwners owners;
  testing::FakeClock clock;
  GateRules rules{.clusters = {"c"}, .lifetimes = true};
};

TEST_F(LifetimesTest, InstantQueriesReadOwnTimesOnly) {
  EXPECT_EQ(ask("query", R"(x{uuid="8"})", "&time=39600"), "time=39600");
  EXPECT_EQ(ask("query", R"(x{uuid="7"})"), "lookback_delta=300.000&time=108000.000");
  EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&time=1970-01-01T20:30:00Z"),
            "time=73800.000&lookback_delta=300.000");
  EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&time=39600"), "403 shared_id");
  EXPECT_EQ(ask("query", R"(x{uuid=~"7|8"})", "&time=39600"), "403 shared_id");
  EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&time=73800&lookback_delta=9h"), "403 shared_id");
  // Three minutes after the others: the server looks back for five, whatever it is asked for.
  EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&time=43380"), "403 shared_id");
  for (const std::string lookback : {"0", "0.0001", "0s", "1", "1m"}) {
    EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&time=43380&lookback_delta=" + lookback),
              "403 shared_id")
        << lookback;
  }
  EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&time=73800&lookback_delta=0"),
            "time=73800.000&lookback_delta=300.000");
  EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&time=73800&lookback_delta=1m"),
            "time=73800.000&lookback_delta=60.000");
  EXPECT_EQ(ask("query", R"(x{uuid="7"} offset 9h)", "&time=73800"), "403 shared_id");
  EXPECT_EQ(ask("query", R"(rate(x{uuid="7"}[9h]))", "&time=73800"), "403 shared_id");
  EXPECT_EQ(ask("query", R"(max_over_time(x{uuid="7"}[9h:1h]))", "&time=73800"), "403 shared_id");
  EXPECT_EQ(ask("query", R"(x{uuid="7"} @ 39600)", "&time=73800"), "403 shared_id");
  EXPECT_EQ(ask("query", "1 + 1", "&time=39600"), "time=39600");
  EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&time=soon"), "400 times");
  EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&time=nan"), "400 times");
  EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&time=1e300"), "400 times");
  EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&lookback_delta=-1"), "400 times");
}

TEST_F(LifetimesTest, RangesAreCutToOwnTimes) {
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"})", "&start=0&end=108000&step=1h"),
            "start=54000.000&end=108000.000&step=1h&lookback_delta=300.000");
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"} @ start())", "&start=0&end=108000&step=1h"),
            "start=0.000&end=108000.000&step=1h&lookback_delta=300.000");
  EXPECT_EQ(
      ask("query_range", R"(x{uuid="7"} + x{uuid="8"} @ start())", "&start=0&end=108000&step=1h"),
      "403 shared_id");
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"})", "&start=0&end=50000&step=60"), "403 shared_id");
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"})", "&start=0&end=108000&step=0"), "400 times");
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"})", "&start=2&end=1&step=1"), "400 times");
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"})", "&start=0&end=108000"), "400 times");
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"})", "&end=108000&step=60"), "400 times");
}

TEST_F(LifetimesTest, AStepOfRangesIsReadBeforeAndBehind) {
  const auto range = [this](std::int64_t start, std::int64_t end, const std::string& step,
                            const std::string& rest = {}) {
    return ask(
        "query_range", R"(x{uuid="7"})",
        "&start=" + std::to_string(start) + "&end=" + std::to_string(end) + "&step=" + step + rest);
  };
  // The others end at 12 h, with slack at 43260 s. Short steps: five minutes and one step.
  EXPECT_EQ(range(0, 108000, "60"),
            "start=43680.000&end=108000.000&step=60&lookback_delta=300.000");
  // Long steps stand for the look-back, and the start may be moved back by one.
  EXPECT_EQ(range(0, 108000, "10m"),
            "start=45000.000&end=108000.000&step=10m&lookback_delta=300.000");
  EXPECT_EQ(range(0, 108000, "60", "&lookback_delta=20m"),
            "start=44580.000&end=108000.000&step=60&lookback_delta=1200.000");
  EXPECT_EQ(range(44461, 108000, "600"),
            "start=44461.000&end=108000.000&step=600&lookback_delta=300.000");
  EXPECT_EQ(range(44460, 108000, "600"),
            "start=45060.000&end=108000.000&step=600&lookback_delta=300.000");
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"} @ start())", "&start=44460&end=108000&step=600"),
            "403 shared_id");
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"} @ start())", "&start=44461&end=108000&step=600"),
            "start=44461.000&end=108000.000&step=600&lookback_delta=300.000");
}

TEST_F(LifetimesTest, TheEndOfARangeMayBeMovedByAStep) {
  // Somebody else's unit from 30 h on: 107940 s with slack.
  const std::string tail = "&step=600&lookback_delta=300";
  owners.ids = {{"7", {.own = {{20 * kHour, 21 * kHour}}, .others = {{30 * kHour, kFarTime}}}}};
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"})", "&start=72000&end=107000" + tail),
            "start=72000.000&end=107000.000&step=600&lookback_delta=300.000");
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"})", "&start=72000&end=108000" + tail),
            "start=72000.000&end=107339.999&step=600&lookback_delta=300.000");
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"} @ end())", "&start=72000&end=107340" + tail),
            "403 shared_id");
  EXPECT_EQ(ask("query_range", R"(x{uuid="7"} @ end())", "&start=72000&end=107339" + tail),
            "start=72000.000&end=107339.000&step=600&lookback_delta=300.000");
}

TEST_F(LifetimesTest, MetadataIsCutToOwnTimes) {
  for (const std::string path : {"series", "labels", "label/x/values"}) {
    EXPECT_EQ(ask(path, R"(x{uuid="7"})"), "start=43260.001") << path;
    EXPECT_EQ(ask(path, R"(x{uuid="7"})", "&start=1&end=90000"), "start=43260.001&end=90000.000");
    EXPECT_EQ(ask(path, R"(x{uuid="7"})", "&start=1&end=50000"), "403 shared_id") << path;
    EXPECT_EQ(ask(path, R"(x{uuid="8"})", "&start=1&end=50000"), "start=1&end=50000") << path;
  }
  EXPECT_EQ(ask("query_exemplars", R"(x{uuid="7"} offset 9h)", "&start=1&end=90000"),
            "start=43260.001&end=90000.000");
}

TEST_F(LifetimesTest, ConfinedUnitsCountToo) {
  rules.confine = true;
  EXPECT_EQ(ask("query", "up", "&time=39600"), "403 shared_id");
  EXPECT_EQ(ask("query", "up", "&time=73800"), "time=73800.000&lookback_delta=300.000");
}

TEST_F(LifetimesTest, OutagesDenyAndAdminsAreNotAsked) {
  EXPECT_TRUE(send(BackendType::kTsdb,
                   {.method = "GET", .target = "/api/v1/query?query=x%7Buuid='7'%7D&time=39600"},
                   "root"));
  owners.broken = true;
  EXPECT_EQ(ask("query", R"(x{uuid="8"})"), "403 owners_unknown");
  EXPECT_EQ(ask("query", "1"), "");
  rules.lifetimes = false;
  EXPECT_EQ(ask("query", R"(x{uuid="7"})", "&time=39600"), "time=39600");
}

class ProfileTimesTest : public LifetimesTest {
 protected:
  /// Status and reason; 200 where it passes.
  std::string call(const std::string& method, const std::string& body, bool is_json = true) {
    const std::string target = "/querier.v1.QuerierService/" + method;
    const auto decided = send(BackendType::kProfiles,
                              {.method = "POST",
                               .target = target,
                               .content_type = is_json ? "application/json" : "application/proto",
                               .body = body},
                              "alice");
    return decided
               ? "200"
               : std::to_string(decided.error().status) + " " + std::string(decided.error().reason);
  }
  static std::string varint_field(unsigned number, std::uint64_t value) {
    std::string bytes(1, static_cast<char>(number << 3U));
    for (; value >= 0x80; value >>= 7U) {
      bytes += static_cast<char>((value & 0x7FU) | 0x80U);
    }
    return bytes + static_cast<char>(value);
  }
  static std::string double_field(unsigned number, double value) {
    std::string bytes(1, static_cast<char>((number << 3U) | 1U));
    auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8U) {
      bytes += static_cast<char>(bits & 0xFFU);
    }
    return bytes;
  }
  static std::string text_field(unsigned number, std::string_view text) {
    std::string bytes;
    append_wire_field(bytes, {.number = number, .has_length = true, .bytes = text});
    return bytes;
  }
};

TEST_F(ProfileTimesTest, JsonCallsReadOwnTimesOnly) {
  const std::string own = R"("step":15,"labelSelector":"{service_name=\"7\"}",)";
  EXPECT_EQ(call("SelectSeries", "{" + own + R"("start":"72000000","end":"75600000"})"), "200");
  EXPECT_EQ(call("SelectSeries", "{" + own + R"("start":72000000,"end":75600000})"), "200");
  EXPECT_EQ(call("SelectSeries", "{" + own + R"("start":"36000000","end":"75600000"})"),
            "403 shared_id");
  EXPECT_EQ(call("SelectSeries", "{" + own + R"("end":"75600000"})"), "403 shared_id");
  EXPECT_EQ(call("SelectSeries", "{" + own + R"("start":"x","end":"75600000"})"), "400 syntax");
  EXPECT_EQ(call("SelectSeries", "{" + own + R"("start":1e3,"end":"75600000"})"), "400 syntax");
  EXPECT_EQ(call("LabelNames", R"({"matchers":["{service_name=\"7\"}"]})"), "403 shared_id");
  EXPECT_EQ(call("LabelNames", R"({"matchers":["{service_name=\"8\"}"]})"), "200");
  const std::string side = R"({"labelSelector":"{service_name=\"7\"}",)";
  const std::string now = side + R"("start":72000000,"end":75600000})";
  const std::string then = side + R"("start":36000000,"end":39600000})";
  EXPECT_EQ(call("Diff", R"({"left":)" + now + R"(,"right":)" + now + "}"), "200");
  EXPECT_EQ(call("Diff", R"({"left":)" + now + R"(,"right":)" + then + "}"), "403 shared_id");
  EXPECT_EQ(call("ProfileTypes", "{}"), "200");
}

TEST_F(ProfileTimesTest, MessagesReadOwnTimesOnly) {
  struct Case {
    const char* method;
    unsigned selector;
    unsigned start;
    unsigned step = 0;
  };
  const std::string own = R"({service_name="7"})";
  for (const Case& one : {Case{"SelectMergeStacktraces", 2, 3}, Case{"SelectMergeProfile", 2, 3},
                          Case{"SelectMergeSpanProfile", 2, 4}, Case{"SelectSeries", 2, 3, 6},
                          Case{"SelectHeatmap", 2, 3, 5}, Case{"LabelNames", 1, 2},
                          Case{"LabelValues", 2, 3}, Case{"Series", 1, 3}}) {
    const std::string begin =
        text_field(one.selector, own) + (one.step == 0 ? "" : double_field(one.step, 15));
    const auto between = [&](std::int64_t start, std::int64_t end) {
      return varint_field(one.start, static_cast<std::uint64_t>(start)) +
             varint_field(one.start + 1, static_cast<std::uint64_t>(end));
    };
    const std::string good = between(20 * kHour, 21 * kHour);
    EXPECT_EQ(call(one.method, begin + good, false), "200") << one.method;
    EXPECT_EQ(call(one.method, begin + between(10 * kHour, 21 * kHour), false), "403 shared_id");
    EXPECT_EQ(call(one.method, begin + between(21 * kHour, 10 * kHour), false), "403 shared_id");
    EXPECT_EQ(call(one.method, begin + between(-1, 21 * kHour), false), "403 shared_id");
    EXPECT_EQ(call(one.method, begin, false), "403 shared_id") << one.method;
    EXPECT_EQ(call(one.method, begin + good + good, false), "400 syntax") << one.method;
    EXPECT_EQ(call(one.method, begin + text_field(one.start, "x"), false), "400 field");
  }
}

TEST_F(ProfileTimesTest, StepsAreReadBeforeTheStart) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string own = R"({service_name="7"})";
  for (const auto& [method, number] :
       {std::pair<std::string, unsigned>{"SelectSeries", 6}, {"SelectHeatmap", 5}}) {
    // Eight hours behind the end of the others, less a minute of slack.
    const std::string begin =
        text_field(2, own) + varint_field(3, 20 * kHour) + varint_field(4, 21 * kHour);
    const auto with = [&](const std::string& step) { return call(method, begin + step, false); };
    EXPECT_EQ(with(double_field(number, 28'739)), "200") << method;
    EXPECT_EQ(with(double_field(number, 28'739.9991)), "403 shared_id") << method;
    EXPECT_EQ(with(double_field(number, 1e9)), "403 shared_id") << method;
    for (const double step : {0.0, -15.0, kInfinity, -kInfinity, std::nan(""), 1e300}) {
      EXPECT_EQ(with(double_field(number, step)), "400 syntax") << method << step;
    }
    EXPECT_EQ(with(""), "400 syntax") << method;
    EXPECT_EQ(with(double_field(number, 15) + double_field(number, 15)), "400 syntax") << method;
    EXPECT_EQ(with(varint_field(number, 15)), "400 field") << method;
    EXPECT_EQ(with(text_field(number, "15")), "400 field") << method;
    const auto json = [&](const std::string& step) {
      return call(method, R"({"labelSelector":"{service_name=\"7\"}","start":"72000000",)"
                          R"("end":"75600000")" +
                              step + "}");
    };
    EXPECT_EQ(json(R"(,"step":28739)"), "200") << method;
    EXPECT_EQ(json(R"(,"step":"28739.0")"), "200") << method;
    EXPECT_EQ(json(R"(,"step":28740.5)"), "403 shared_id") << method;
    for (const char* step :
         {"0", "-1", "1e300", "\"NaN\"", "\"Infinity\"", "\"x\"", "null", "true"}) {
      EXPECT_EQ(json(R"(,"step":)" + std::string(step)), "400 syntax") << method << step;
    }
    EXPECT_EQ(json(R"(,"step":[1])"), "400 field") << method;
    EXPECT_EQ(json(""), "400 syntax") << method;
  }
}

}  // namespace
}  // namespace ceems::gate
