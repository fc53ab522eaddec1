#include <algorithm>
#include <map>

#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "api/tsdb/fleet.h"
#include "api/tsdb/hour_energy.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using store::kDay;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using tsdb::FakeTransport;
using Values = std::vector<std::optional<double>>;

constexpr double kKwh = 3.6e6;  // joules

TEST(Hours, AreThoseOfTheZone) {
  const auto zone = [](const char* name) { return TimeZone::find(name).value(); };
  constexpr std::int64_t kMidnight = 1'767'225'600'000;  // 2026-01-01T00:00:00Z
  EXPECT_THAT(hours_of(kMidnight + 1, kMidnight + kUsageHourMs, {}),
              ElementsAre(kMidnight, kMidnight + kUsageHourMs));
  // 05:30 in Kolkata, where midnight and all hours are half an hour off.
  EXPECT_THAT(hours_of(kMidnight, kMidnight, zone("Asia/Kolkata")),
              ElementsAre(kMidnight - 30 * kMinuteMs));
  EXPECT_THAT(hours_of(kMidnight, kMidnight, zone("Asia/Kathmandu")),
              ElementsAre(kMidnight - 45 * kMinuteMs));
  // Days of 25 and 23 hours: 2025-10-26 and 2025-03-30.
  const TimeZone paris = zone("Europe/Paris");
  for (const auto& [begin, hours] :
       {std::pair(1'761'429'600'000, 25), std::pair(1'743'289'200'000, 23)}) {
    const std::int64_t end = paris.day_start(begin + 36 * kUsageHourMs);
    const auto all = hours_of(begin, end - 1, paris);
    EXPECT_EQ(std::ssize(all), hours);
    EXPECT_EQ(all.front(), begin);
    EXPECT_EQ(all.back(), end - kUsageHourMs);
  }
}

TEST(Hours, AreSharedByTheTimeThatAUnitRan) {
  const HourUnit ended{.started_ms = kNow + 15 * kMinuteMs, .ended_ms = kNow + 90 * kMinuteMs};
  EXPECT_EQ(share_of_hour(ended, kNow - kUsageHourMs, kNow + kDay), 0);
  EXPECT_EQ(share_of_hour(ended, kNow, kNow + kDay), 0.75);
  EXPECT_EQ(share_of_hour(ended, kNow + kUsageHourMs, kNow + kDay), 0.5);
  EXPECT_EQ(share_of_hour(ended, kNow + 2 * kUsageHourMs, kNow + kDay), 0);
  const HourUnit runs{.started_ms = kNow};
  EXPECT_EQ(share_of_hour(runs, kNow, kNow + 6 * kMinuteMs), 0.1);
  EXPECT_EQ(share_of_hour({}, kNow, kNow + kDay), 0);  // it waits
}

const std::vector<std::int64_t> kHours{kNow, kNow + kUsageHourMs, kNow + 2 * kUsageHourMs};

HourUnit unit_of(const std::string& user, std::int64_t started_ms, std::int64_t ended_ms) {
  return {.cluster = "c",
          .uuid = "1",
          .user = user,
          .project = "p",
          .started_ms = started_ms,
          .ended_ms = ended_ms};
}

TEST(EnergyOfUnits, BeginsAtZeroInTheHourOfTheStart) {
  const EnergyByUnit energy{{"1",
                             {{.all = 1, .gpus = 0.25, .all_of_new = 2, .gpus_of_new = 0.5},
                              {.all = 3, .all_of_new = 300},
                              {}}}};
  const auto found = energy_of_units({unit_of("ada", kNow + kMinuteMs, 0)}, {}, kHours, energy);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].all, (Values{2, 3, std::nullopt}));
  EXPECT_EQ(found[0].gpus, (Values{0.5, std::nullopt, std::nullopt}));
  // It started before: what a counter that was not read for an hour shows is not of this hour.
  EXPECT_EQ(energy_of_units({unit_of("ada", kNow - kDay, 0)}, {}, kHours, energy)[0].all,
            (Values{1, 3, std::nullopt}));
}

TEST(EnergyOfUnits, IsNeverThatOfAnotherUnitWithTheId) {
  const EnergyByUnit energy{{"1", {{.all = 1}, {.all = 2}, {.all = 4}}}};
  const std::int64_t half = kNow + kUsageHourMs + kUsageHourMs / 2;
  const HourUnit ada = unit_of("ada", kNow - kDay, kNow + kUsageHourMs / 2);
  // Bob's begins in the last hour.
  const HourLife bobs{
      .uuid = "1", .started_ms = kNow + 2 * kUsageHourMs + kMinuteMs, .ended_ms = 0};
  EXPECT_EQ(energy_of_units({ada}, {bobs}, kHours, energy)[0].all,
            (Values{1, std::nullopt, std::nullopt}));
  // In the hour in which one ends and the other begins, the owner is unclear.
  const HourLife soon{.uuid = "1", .started_ms = kNow + 40 * kMinuteMs, .ended_ms = half};
  EXPECT_EQ(energy_of_units({ada}, {soon}, kHours, energy)[0].all,
            (Values{std::nullopt, std::nullopt, std::nullopt}));
  // The same if both are seen, and belong to different groups.
  const auto both =
      energy_of_units({ada, unit_of("bob", kNow + 40 * kMinuteMs, 0)}, {}, kHours, energy);
  EXPECT_EQ(both[0].all, (Values{std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_EQ(both[1].all, (Values{std::nullopt, 2, 4}));
  // A run that was queued again is counted once.
  const auto again =
      energy_of_units({ada, unit_of("ada", kNow + 40 * kMinuteMs, 0)}, {}, kHours, energy);
  EXPECT_EQ(again[0].all, (Values{std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_EQ(again[1].all, (Values{1, 2, 4}));
  // What seems to run has ended when the next one starts.
  const HourLife next{.uuid = "1", .started_ms = kNow + 2 * kUsageHourMs, .ended_ms = 0};
  EXPECT_EQ(energy_of_units({unit_of("ada", kNow, 0)}, {next}, kHours, energy)[0].all,
            (Values{1, 2, std::nullopt}));
}

std::string matrix_of(const std::string& series) {
  return R"({"status":"success","data":{"resultType":"matrix","result":[)" + series + "]}}";
}

/// What a unit of these ids uses in each hour, in kWh.
const std::map<std::string, double> kUses{{"1", 1}, {"2", 2}, {"3", 4}, {"4", 8}, {"10", 16}};

/// A TSDB in which the units use that in the last hour before kNow; half of it on GPUs.
Result<net::ClientResponse> hourly(const FakeTransport::Request& request) {
  const std::string query = request.first("query");
  std::string series;
  const auto add = [&](const std::string& uuid, const std::string& kind, double kwh) {
    series += fmt::format(
        R"({}{{"metric":{{"uuid":"{}","kind":"{}"}},"values":[[{},"{}"],[{},"NaN"]]}})",
        series.empty() ? "" : ",", uuid, kind, kNow / 1000, kwh * kKwh, kNow / 1000 + 3600);
  };
  if (query.contains("uuid!=\"\"")) {
    add("", "all", 40);
    if (query.contains("\"gpus\"")) {
      add("", "gpus", 15);
    }
    return FakeTransport::ok(matrix_of(series));
  }
  const std::size_t begin = query.find("uuid=~\"") + 7;
  const std::string ids = query.substr(begin, query.find('"', begin) - begin);
  for (const std::string_view id : split(ids, '|')) {
    if (const auto found = kUses.find(std::string(id)); found != kUses.end()) {
      add(found->first, "all", found->second / 2);
      add(found->first, "all_of_new", found->second);
      if (query.contains("\"gpus\"")) {
        add(found->first, "gpus_of_new", found->second / 2);
      }
    }
  }
  return FakeTransport::ok(matrix_of(series));
}

class UsageHours : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    // On hpc-b, where ada is not a member, she has no units of her own here.
    for (const std::string table : {"units", "usage", "daily_usage", "ceems_unit_facts"}) {
      execute("UPDATE " + table +
              " SET username = 'dan' WHERE username = 'ada' AND cluster_id = 'hpc-b'");
    }
    auto transport =
        std::make_unique<FakeTransport>([this](const auto& request) { return answer_(request); });
    transport_ = transport.get();
    auto client = std::make_unique<tsdb::Client>("http://t", std::move(transport), clock_);
    tsdbs_["hpc-a"].client = std::move(client);
    tsdbs_["hpc-a"].cluster_label = "ceems_id";
    make(options());
  }
  ApiOptions options() {
    ApiOptions options;
    options.fleet = &fleet_;
    options.site.clusters = {{.id = "hpc-a", .manager = "slurm", .series = true},
                             {.id = "hpc-b", .manager = "slurm", .series = false}};
    return options;
  }
  json::value data(const std::string& rest, const std::string& user) {
    const std::string target =
        std::string(user == "root" ? "usage/series/admin" : "usage/series") + "?step=hour&" + rest;
    const auto response = get("/api/v1/" + target, user);
    EXPECT_EQ(response.status, 200) << target << response.body;
    return json::parse(response.body).at("data");
  }
  std::string text(const std::string& rest, const std::string& user) {
    return json::serialize(data(rest, user));
  }
  std::string error(const std::string& rest) {
    const auto response = get("/api/v1/usage/series/admin?step=hour&" + rest, "root");
    EXPECT_EQ(response.status, 400) << rest << response.body;
    return std::string(json::parse(response.body).at("error").as_string());
  }
  std::vector<std::string> queries() const {
    std::vector<std::string> all;
    for (const auto& request : transport_->requests()) {
      if (request.path.ends_with("/query_range")) {
        all.push_back(request.first("query"));
      }
    }
    return all;
  }
  void write_units(int count,
                   std::int64_t started_ms,
                   std::int64_t ended_ms = kNow,
                   const std::string& cluster = "hpc-a",
                   std::int64_t read_until_ms = kNow + 1000) {
    store::ClusterUpdate update;
    update.cluster = {.id = cluster, .manager = "slurm", .updaters = {}};
    std::int64_t& read = read_until_.try_emplace(cluster, kNow).first->second;
    update.window = {read, read_until_ms};
    read = read_until_ms;
    for (int i = 0; i < count; ++i) {
      const std::string uuid = std::to_string(5000 + ++written_);
      model::Unit& unit = update.units.emplace_back(job(uuid, "ada", "fluids"));
      unit.cluster_id = cluster;
      unit.started_at_ts = started_ms;
      unit.ended_at_ts = ended_ms;
    }
    write(update);
  }
  /// The energy by hour, as administrators see it.
  std::string kwh(const std::string& rest) {
    return json::serialize(data(rest, "root").at("values").at("kwh"));
  }

  FakeTransport::Answer answer_ = hourly;
  FakeTransport* transport_ = nullptr;
  int written_ = 0;
  std::map<std::string, std::int64_t> read_until_;  ///< by cluster
  ClusterTsdbs tsdbs_;
  Fleet fleet_{tsdbs_, clock_};
};

/// The two hours before kNow.
constexpr std::string_view kPeriod = "from=1767218400&to=1767225599";
std::string in_period(const std::string& rest) {
  return std::string(kPeriod) + "&" + rest;
}

TEST_F(UsageHours, AreSumsOfAllMembersOfAProject) {
  // Units 1 and 10 are ada's, 2 bob's and 4 the service account's. Each has 2 CPUs; all but 10 ran
  // for half an hour.
  EXPECT_EQ(text(in_period("field=kwh,core_hours,gpu_hours,units"), "ada"),
            R"x({"step":"hour","groups":["(all)"],"times":[1767218400000,1767222000000],)x"
            R"("values":{"kwh":[[0,27]],"core_hours":[[0,5]],"gpu_hours":[[0,0]],)"
            R"("units":[[0,4]]},"totals":{"kwh":[27],"core_hours":[5],"gpu_hours":[0],)"
            R"("units":[4]},"missing":[]})");
  const json::value users = data(in_period("by=user"), "ada");
  EXPECT_EQ(json::serialize(users.at("groups")), R"(["ada","fluids:svc","bob"])");
  EXPECT_EQ(json::serialize(users.at("values")), R"({"kwh":[[0,17],[0,8],[0,2]]})");
  const json::value one = data(in_period("by=user&user=bob"), "ada");
  EXPECT_EQ(json::serialize(one.at("totals")), R"({"kwh":[2]})");
  const json::value top = data(in_period("by=user&top=1"), "ada");
  EXPECT_EQ(json::serialize(top.at("groups")), R"x(["ada","(others)"])x");
  EXPECT_EQ(json::serialize(top.at("totals")), R"({"kwh":[17,10]})");
  const json::value all = data(in_period("by=project"), "root");
  EXPECT_EQ(json::serialize(all.at("groups")), R"(["fluids","optics"])");
  EXPECT_EQ(json::serialize(all.at("totals")), R"({"kwh":[27,4]})");
}

TEST_F(UsageHours, HaveNothingOfProjectsOfOthers) {
  EXPECT_EQ(text(in_period("by=project&project=optics"), "ada"),
            R"({"step":"hour","groups":[],"times":[1767218400000,1767222000000],)"
            R"("values":{"kwh":[]},"totals":{"kwh":[]},"missing":[]})");
  EXPECT_EQ(data(in_period("user=eve&by=user"), "ada").at("groups").as_array().size(), 0U);
  EXPECT_EQ(data(in_period("scope=led"), "ada").at("groups").as_array().size(), 0U);
  EXPECT_EQ(data(in_period("by=project"), "stranger").at("groups").as_array().size(), 0U);
  EXPECT_TRUE(queries().empty());
  data(in_period("by=project"), "ada");
  ASSERT_EQ(queries().size(), 1U);
  EXPECT_THAT(queries()[0], HasSubstr(R"({domain="node",uuid=~"1|10|2|4",ceems_id="hpc-a"})"));
  // Fluids has other members on hpc-b, where ada is none.
  EXPECT_EQ(json::serialize(data(in_period("by=cluster"), "ada").at("groups")), R"(["hpc-a"])");
  EXPECT_EQ(get("/api/v1/usage/series/admin?step=hour", "ada").status, 403);
  EXPECT_EQ(get("/api/v1/usage/series?step=hour").status, 401);
}

TEST_F(UsageHours, SayWhichClustersAreMissing) {
  // Bob is a member on both; the units of hpc-b ran and were not measured.
  const json::value bobs = data(in_period("by=cluster&field=kwh,core_hours"), "bob");
  EXPECT_EQ(json::serialize(bobs.at("groups")), R"(["hpc-a","hpc-b"])");
  EXPECT_EQ(json::serialize(bobs.at("values")),
            R"({"kwh":[[0,27],[0,null]],"core_hours":[[0,5],[0,5]]})");
  EXPECT_EQ(json::serialize(bobs.at("missing")), R"([{"cluster_id":"hpc-b","reason":"no_tsdb"}])");
  answer_ = [](const auto& /*request*/) {
    return Result<net::ClientResponse>(fail(ErrorCode::kUnavailable, "http://secret: refused"));
  };
  const std::string down = text(in_period("by=project"), "ada");
  EXPECT_THAT(down, HasSubstr(R"("values":{"kwh":[[0,null]]},"totals":{"kwh":[0]},)"
                              R"("missing":[{"cluster_id":"hpc-a","reason":"unavailable"}])"));
  EXPECT_THAT(down, Not(HasSubstr("secret")));
  const json::value whole = data(in_period("by=cluster"), "root");
  EXPECT_EQ(json::serialize(whole.at("groups")), "[]");
  EXPECT_EQ(whole.at("missing").as_array().size(), 2U);
  make();  // a site without any TSDB
  EXPECT_EQ(json::serialize(data(in_period("field=kwh"), "ada").at("values")),
            R"({"kwh":[[0,null]]})");
}

TEST_F(UsageHours, OfWholeClustersNeedNoListOfUnits) {
  const std::string answer =
      R"x({"step":"hour","groups":["(all)"],"times":[1767218400000,1767222000000],)x"
      R"("values":{"kwh":[[null,40]]},"totals":{"kwh":[40]},)"
      R"("missing":[{"cluster_id":"hpc-b","reason":"no_tsdb"}]})";
  EXPECT_EQ(text(std::string(kPeriod), "root"), answer);
  ASSERT_EQ(queries().size(), 1U);
  EXPECT_THAT(queries()[0], Not(HasSubstr("=~")));
  EXPECT_EQ(text(std::string(kPeriod), "root"), answer);
  EXPECT_EQ(queries().size(), 1U);  // kept for a minute
  clock_.advance(std::chrono::seconds(61));
  EXPECT_EQ(json::serialize(data(in_period("by=component&cluster_id=hpc-a"), "root").at("values")),
            R"({"kwh":[[null,25],[null,15]]})");
  EXPECT_EQ(queries().size(), 2U);
  // With what the units reserved, and of the units that are known.
  const json::value both = data(in_period("by=cluster&field=kwh,core_hours"), "root");
  EXPECT_EQ(json::serialize(both.at("values")),
            R"({"kwh":[[null,40],[null,null]],"core_hours":[[0,6],[0,6]]})");
  EXPECT_EQ(json::serialize(data(in_period("by=component&project=fluids"), "root").at("values")),
            R"({"kwh":[[0,1.35E1],[0,1.35E1]]})");
}

TEST_F(UsageHours, OfWholeClustersAreZeroOnlyWhereNothingRan) {
  answer_ = [](const auto& /*request*/) { return FakeTransport::ok(matrix_of("")); };
  // The database may not have all units that ran before the end of the first one that it has.
  EXPECT_EQ(kwh(std::string(kPeriod)), "[]");
  write_units(1, kNow - 6 * kUsageHourMs, kNow - 5 * kUsageHourMs);
  // In the first of these hours nothing ran. In the second one, units did that were not measured.
  EXPECT_EQ(kwh(in_period("by=none")), "[[0,null]]");
  EXPECT_EQ(kwh(in_period("by=cluster")), "[[0,null]]");
  EXPECT_EQ(json::serialize(data(in_period("by=component"), "root").at("groups")), R"(["cpu"])");
  EXPECT_EQ(kwh(in_period("by=component")), "[[0,null]]");
  EXPECT_EQ(kwh(in_period("by=none&field=kwh,core_hours")), "[[0,null]]");
  EXPECT_EQ(kwh("from=1767204000&to=1767221999&by=cluster"), "[[null,0,0,0,0]]");
  write_units(1001, kNow - 150 * kMinuteMs, kNow - 149 * kMinuteMs, "hpc-a", kNow + 2000);
  EXPECT_EQ(kwh("from=1767204000&to=1767221999&by=cluster"), "[]") << "too many to look at";
}

TEST_F(UsageHours, OfWholeClustersAreNotZeroBeforeTheyWereRead) {
  answer_ = [](const auto& /*request*/) { return FakeTransport::ok(matrix_of("")); };
  for (const char* cluster : {"one", "two"}) {
    tsdbs_[cluster].client = std::make_unique<tsdb::Client>(
        "http://e",
        std::make_unique<FakeTransport>([this](const auto& asked) { return answer_(asked); }),
        clock_);
  }
  ApiOptions both = options();
  both.site.clusters = {{.id = "one", .manager = "slurm", .series = true},
                        {.id = "two", .manager = "slurm", .series = true}};
  make(std::move(both));
  const std::string now = "from=1767225600&to=1767229200";
  write_units(1, kNow - 2 * kUsageHourMs, kNow, "one", kNow + kUsageHourMs);
  write_units(1, kNow - 2 * kUsageHourMs, kNow, "two", kNow + kUsageHourMs - 1000);
  clock_.advance(std::chrono::minutes(59));
  EXPECT_EQ(kwh(now + "&by=cluster"), "[]") << "the hour is not over";
  clock_.advance(std::chrono::minutes(30));
  EXPECT_EQ(kwh(now + "&by=cluster"), "[[0,null]]") << "the second cluster was not read to its end";
  EXPECT_EQ(kwh(now + "&by=none"), "[[null,null]]");
  EXPECT_EQ(kwh(now + "&by=none&cluster_id=one"), "[[0,null]]");
  write_units(1, kNow - 2 * kUsageHourMs, kNow, "two", kNow + kUsageHourMs);
  EXPECT_EQ(kwh(now + "&by=none"), "[[0,null]]");
}

TEST_F(UsageHours, OfTooManyUnitsAreRefused) {
  write_units(2001, kNow - kHour);
  EXPECT_EQ(error(in_period("by=project")),
            "more than 2000 units: choose a shorter period or narrow by project, user or "
            "cluster_id");
  EXPECT_EQ(error(in_period("project=fluids")), error(in_period("by=user")));
  EXPECT_EQ(get("/api/v1/usage/series?step=hour&" + std::string(kPeriod), "ada").status, 400);
  EXPECT_TRUE(queries().empty());
  EXPECT_EQ(json::serialize(data(std::string(kPeriod), "root").at("totals")), R"({"kwh":[40]})");
  // What they reserved is known by the database alone: 2001 times 2 CPUs for an hour.
  EXPECT_EQ(json::serialize(data(in_period("field=core_hours"), "ada").at("totals")),
            R"({"core_hours":[4007]})");
  // Those that started later do not count.
  EXPECT_EQ(data("from=1767214800&to=1767218400&by=project", "root").at("groups").as_array().size(),
            0U);
}

TEST_F(UsageHours, AreNotKnownBeforeTheyBegin) {
  const json::value hours = data("from=1767222000&to=1767229200&by=project", "ada");
  EXPECT_EQ(json::serialize(hours.at("values")), R"({"kwh":[[27,null,null]]})");
  // A day by default.
  EXPECT_EQ(data("", "ada").at("times").as_array().size(), 24U);
}

TEST_F(UsageHours, HaveThoseBefore) {
  clock_.advance(std::chrono::minutes(30));
  const json::value hours = data("from=1767225600&to=1767225600&by=user&previous", "ada");
  EXPECT_EQ(json::serialize(hours.at("previous")),
            R"({"times":[1767222000000],"values":{"kwh":[[17],[10]]},"totals":{"kwh":[17,10]},)"
            R"("missing":[]})")
      << json::serialize(hours);
}

TEST_F(UsageHours, CostWhatTheSiteSays) {
  EXPECT_EQ(json::serialize(data(in_period("field=cost"), "ada").at("values")),
            R"({"cost":[[null,null]]})");
  ApiOptions priced = options();
  priced.site.prices = {.kwh = 0.5, .core_hour = 0.25};
  make(std::move(priced));
  // 27 kWh and 5 core-hours.
  EXPECT_EQ(json::serialize(data(in_period("field=cost"), "ada").at("values")),
            R"({"cost":[[0,1.475E1]]})");
}

TEST_F(UsageHours, RefuseWhatIsNotKnownByTheHour) {
  EXPECT_THAT(error("field=kwh,grams"), HasSubstr("'field': grams is known by day and month, not"));
  EXPECT_THAT(error("field=kwh,not_used_kwh"), HasSubstr("'field': not_used_kwh is known by day"));
  EXPECT_THAT(error("field=gpu_hours_with_energy"), HasSubstr("is known by day and month"));
  EXPECT_THAT(error("field=foo"), HasSubstr("'field'"));
  EXPECT_THAT(error("by=component&field=cost"), HasSubstr("'field'"));
  EXPECT_THAT(error("by=node"), HasSubstr("'by'"));
  EXPECT_THAT(error("from=5&to=4"), HasSubstr("'from'"));
  EXPECT_THAT(error("from=1766015999&to=1767225600"), HasSubstr("at most 14 days"));
  EXPECT_EQ(data("from=1766016000&to=1767225600", "root").at("times").as_array().size(), 337U);
  EXPECT_THAT(get("/api/v1/usage/series?step=minute", "ada").body, HasSubstr("'step'"));
}

TEST_F(UsageHours, HaveNoTagBecauseTheTsdbHasNone) {
  EXPECT_EQ(header(get("/api/v1/usage/series?step=hour", "ada"), "ETag"), "(none)");
  EXPECT_NE(header(get("/api/v1/usage/series?step=day", "ada"), "ETag"), "(none)");
}

TEST_F(UsageHours, AreReadInPartsOfBoundedSize) {
  EnergyRequest request{.cluster_id = "hpc-a", .units = {}};
  for (int hour = 0; hour < 25; ++hour) {
    request.hours.push_back(kNow + hour * kUsageHourMs);
  }
  for (int i = 0; i < 101; ++i) {
    request.units.push_back({.uuid = fmt::format("a.{:03}", i), .started_ms = kNow - kDay});
  }
  request.units[0].ended_ms = kNow + kUsageHourMs;  // not in the second day
  ASSERT_TRUE(read_energy(tsdbs_["hpc-a"], request, clock_));
  const auto requests = transport_->requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].first("start"), fmt::to_string(kNow / 1000 + 3600));
  EXPECT_EQ(requests[0].first("end"), fmt::to_string(kNow / 1000 + 24 * 3600));
  EXPECT_EQ(requests[0].first("step"), "3600");
  EXPECT_EQ(requests[2].first("start"), requests[2].first("end"));
  EXPECT_THAT(requests[1].first("query"), HasSubstr(R"(uuid=~"a[.]100")"));
  EXPECT_THAT(requests[2].first("query"), Not(HasSubstr("a[.]000")));
  answer_ = [this](const auto& asked) {
    clock_.advance(std::chrono::seconds(20));
    return hourly(asked);
  };
  request.until = clock_.steady_now() + std::chrono::seconds(30);
  const auto slow = read_energy(tsdbs_["hpc-a"], request, clock_);
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, ErrorCode::kTimeout);
}

TEST(EnergyQuery, TakesTheWholeNodeWhereItIsKnown) {
  const std::string query = energy_query("1|2", ",ceems_id=\"c\"", false);
  EXPECT_THAT(
      query,
      StartsWith(
          "label_replace(sum by (uuid) (sum without (domain) (max without (instance, job) "
          R"(((last_over_time(ceems_compute_unit_energy_joules_total{domain="node",uuid=~"1|2",)"
          R"(ceems_id="c"}[1h]) - last_over_time()"));
  EXPECT_THAT(query, HasSubstr(R"({domain!="node",uuid=~"1|2",ceems_id="c"}[1h] offset 1h)"));
  EXPECT_THAT(energy_query("1\\d\"", "", true),
              HasSubstr(R"({domain=~"gpu.*",uuid=~"1\\d\""}[1h])"));
}

}  // namespace
}  // namespace ceems::api
