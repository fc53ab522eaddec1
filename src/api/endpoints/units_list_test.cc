// Lists of units, sums over them and usage over days, through the API.
#include <set>
#include <tuple>

#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/answer/long_answer.h"
#include "api/server_test_support.h"
#include "store/facts.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Texts = std::vector<std::string>;

class Lists : public ServerTest {
 protected:
  json::value data(const std::string& target, const std::string& user = "root") {
    const auto response = get("/api/v1/" + target, user);
    EXPECT_EQ(response.status, 200) << target << " " << response.body;
    return json::parse(response.body).at("data");
  }
  /// The values of the first column.
  Texts first(const std::string& target, const std::string& user = "root") {
    Texts values;
    const json::value table = data(target, user);
    for (const json::value& row : table.at("rows").as_array()) {
      const json::value& value = row.at(0);
      values.push_back(value.is_string() ? std::string(value.as_string()) : json::serialize(value));
    }
    return values;
  }
  std::string error(const std::string& target) {
    const auto response = get("/api/v1/" + target, "root");
    EXPECT_EQ(response.status, 400) << target << " " << response.body;
    return std::string(json::parse(response.body).at("error").as_string());
  }
  /// Writes units of cluster c that use 1, 2, 3... kWh and end one after the other.
  void write_units(int count, const std::string& name = "run") {
    store::ClusterUpdate update;
    update.cluster = {.id = "c", .manager = "slurm", .updaters = {}};
    update.window = {kNow - kHour, kNow};
    for (int i = 0; i < count; ++i) {
      model::Unit unit = job(std::to_string(1000 + i), "ada", "fluids");
      unit.name = name;
      unit.started_at_ts = kNow - kHour;
      unit.ended_at_ts = kNow - (i + 1) * 1000;
      unit.tags = R"({"partition":"gpu"})";
      unit.allocation = R"({"cpus":64,"gpus":4,"mem":274877906944,"nodes":2,"time_limit":86400})";
      store::with(unit, model::Metric::kTotalCpuEnergyUsageKwh, {{"total", i + 1}});
      store::with(unit, model::Metric::kTotalCpuEmissionsGms, {{"rte_total", 10.5 * (i + 1)}});
      unit.idle_kwh = 0.25;
      if (i != 1) {  // as if that one were from before it was counted
        unit.not_used_kwh = 0.125;
      }
      update.units.push_back(unit);
    }
    write(update);
  }
};

TEST_F(Lists, HaveColumnsAndRows) {
  write_units(1);
  EXPECT_THAT(
      body("units/list/admin?cluster_id=c&columns=cluster_id,uuid,started,name,user,project,state,"
           "ended,wall,cpus,memory,gpus,nodes,time_limit,partition,cpu,mem,kwh,gpu_kwh,grams,cost,"
           "unused,not_used,advice",
           "root"),
      HasSubstr(R"("rows":[["c","1000",1767222000000,"run","ada","fluids","COMPLETED",)"
                R"(1767225599000,1800,64,274877906944,4,2,86400,"gpu",41.25,null,1,null,10.5,null,)"
                R"(0.25,0.125,[]]])"));
}

TEST_F(Lists, HaveVerdictsAndOnRequestWhatWasUsedOverTime) {
  write_units(4);
  const auto key = [](const char* uuid) {
    return store::ReportKey{.cluster_id = "c", .uuid = uuid, .started_at_ts = kNow - kHour};
  };
  const auto row = [&](const char* uuid, std::int64_t ended, store::Verdict verdict) {
    return store::ReportRow{
        .key = key(uuid), .ended_at_ts = ended, .final = true, .verdict = verdict};
  };
  ASSERT_TRUE(db_->writer().store_reports({row("1000", kNow - 1000, store::Verdict::kFits),
                                           row("1001", kNow - 2000, store::Verdict::kSmaller),
                                           row("1002", kNow - 3000, store::Verdict::kLook)}));
  const std::string line = std::string(23, '.') + "_";
  ASSERT_TRUE(db_->writer().store_strips({{.key = key("1000"), .text = line + line},
                                          {.key = key("1001"), .text = "<script>"},
                                          {.key = key("1002"), .text = line}}));
  const std::string base = "units/list/admin?cluster_id=c";
  EXPECT_THAT(first(base + "&columns=verdict&sort=verdict"),
              ElementsAre("look", "smaller", "fits", "null"));
  EXPECT_THAT(first(base + "&columns=verdict&sort=verdict&order=asc"),
              ElementsAre("fits", "smaller", "look", "null"));
  EXPECT_THAT(first(base + "&columns=strip&sort=uuid&order=asc"),
              ElementsAre(line + line, "null", line, "null"));
  EXPECT_THAT(
      get("/api/v1/" + base + "&columns=uuid,verdict,strip&sort=uuid&order=asc&format=csv", "root")
          .body,
      ::testing::StartsWith("uuid,verdict,strip\r\n1000,fits," + line + line + "\r\n" +
                            "1001,smaller,\r\n"));
  EXPECT_THAT(body(base, "root"), AllOf(HasSubstr(R"("verdict")"), Not(HasSubstr("strip"))));
  EXPECT_EQ(error(base + "&sort=strip"),
            "query parameter 'sort': expected a column that rows can be sorted by");
}

/// Ids as squeue, sacct and mails of SLURM show them.
class ShownIdsOfUnits : public Lists {
 protected:
  void SetUp() override {
    Lists::SetUp();
    store::ClusterUpdate update;
    update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
    update.window = {kNow, kNow + kHour};
    const auto add = [&](const std::string& id, const std::string& user, const std::string& group) {
      model::Unit unit = job(id, user, "fluids");
      unit.name = "sweep";
      unit.allocation = group;
      update.units.push_back(unit);
    };
    add("7101", "ada", R"({"array_job":7100,"array_task":4})");
    add("7102", "ada", R"({"array_job":7100,"array_task":5})");
    add("7103", "ada", R"({"array_job":7100,"array_task":40})");
    add("7100", "ada", R"({"array_job":7100,"array_task":9})");
    add("8200", "ada", R"({"het_job":8200,"het_offset":0})");
    add("8201", "ada", R"({"het_job":8200,"het_offset":1})");
    add("9000", "ada", "{}");
    add("9000.batch", "ada", "{}");  // of OpenPBS on a host called batch
    // Stored before units had their group.
    for (const char* id : {"8300", "8301", "8302"}) {
      add(id, "ada", "{}");
    }
    add("8303", "eve", "{}");
    add("7201", "eve", R"({"array_job":7200,"array_task":1})");
    write(update);
  }
  Texts units(const std::string& query, const std::string& user = "ada") {
    Texts ids;
    const json::value rows = data("units?cluster_id=hpc-a&field=uuid&" + query, user);
    for (const json::value& row : rows.as_array()) {
      ids.emplace_back(row.at("uuid").as_string());
    }
    return ids;
  }
};

TEST_F(ShownIdsOfUnits, FindUnits) {
  EXPECT_THAT(units("uuid=7100_4"), ElementsAre("7101"));
  EXPECT_THAT(units("uuid=7100_4.batch"), ElementsAre("7101"));
  EXPECT_THAT(units("uuid=9000.extern,7100_5.0"), ElementsAre("7102", "9000"));
  EXPECT_THAT(units("uuid=9000.batch"), ElementsAre("9000.batch"));
  EXPECT_THAT(units("uuid=8303.batch", "eve"), ElementsAre("8303"));
  EXPECT_THAT(units("uuid=7100_[4-5]"), ElementsAre("7101", "7102"));
  EXPECT_THAT(units("uuid=7100_[1,5,9%252]"), ElementsAre("7100", "7102"));
  EXPECT_THAT(units("uuid=7100_*"), ElementsAre("7100", "7101", "7102", "7103"));
  EXPECT_THAT(units("uuid=8200%2B1"), ElementsAre("8201"));
  EXPECT_THAT(units("uuid=8200%2B*&uuid=9000"), ElementsAre("8200", "8201", "9000"));
  EXPECT_THAT(units("uuid=7100_7"), ElementsAre());
  // Ids of units keep their meaning.
  EXPECT_THAT(units("uuid=7100"), ElementsAre("7100"));
  EXPECT_THAT(units("uuid=7101,7102"), ElementsAre());
}

TEST_F(ShownIdsOfUnits, FindPartsThatWereStoredWithoutTheirGroup) {
  EXPECT_THAT(units("uuid=8300%2B0"), ElementsAre("8300"));
  EXPECT_THAT(units("uuid=8300%2B1"), ElementsAre("8301"));
  EXPECT_THAT(units("uuid=8300%2B[1-3]"), ElementsAre("8301", "8302"));
  EXPECT_THAT(units("uuid=8300%2B3"), ElementsAre()) << "somebody else's job";
  EXPECT_THAT(units("uuid=8303%2B0", "eve"), ElementsAre()) << "a job of its own";
  EXPECT_THAT(units("uuid=8300%2B*"), ElementsAre()) << "which may be jobs submitted in a row";
  EXPECT_THAT(units("uuid=8300_1"), ElementsAre());
  EXPECT_THAT(units("uuid=8200%2B2"), ElementsAre()) << "8202 is not part of it";
  EXPECT_EQ(get("/api/v1/units/report?cluster_id=hpc-a&uuid=8300%2B1", "ada").status, 200);
  EXPECT_EQ(get("/api/v1/units/report?cluster_id=hpc-a&uuid=8300%2B1", "eve").status, 404);
}

TEST_F(ShownIdsOfUnits, FindNoUnitsOfOthers) {
  EXPECT_THAT(units("uuid=7200_1"), ElementsAre());
  EXPECT_THAT(units("uuid=7200_1", "eve"), ElementsAre("7201"));
  EXPECT_EQ(get("/api/v1/units/report?cluster_id=hpc-a&uuid=7200_1", "ada").status, 404);
  EXPECT_EQ(get("/api/v1/units/verify?cluster_id=hpc-a&uuid=7101", "ada").status, 200);
  EXPECT_EQ(get("/api/v1/units/verify?cluster_id=hpc-a&uuid=7100_4", "ada").status, 403)
      << "the gate asks about labels of series";
}

TEST_F(ShownIdsOfUnits, FindReportsListsAndSums) {
  EXPECT_EQ(get("/api/v1/units/report?cluster_id=hpc-a&uuid=7100_4", "ada").status, 200);
  EXPECT_EQ(get("/api/v1/units/report?cluster_id=hpc-a&uuid=8200%2B1", "ada").status, 200);
  EXPECT_EQ(get("/api/v1/units/report?cluster_id=hpc-a&uuid=9000.extern", "ada").status, 200);
  const auto shown = [&](const std::string& id) {
    return data("units/report?cluster_id=hpc-a&uuid=" + id, "ada").at(0).at("job").at("array");
  };
  EXPECT_EQ(shown("7101"), "7100_4");
  EXPECT_EQ(shown("8201"), "8200+1");
  EXPECT_TRUE(shown("9000").is_null());
  // A range has a report of each of its units.
  const std::string range = "units/report?cluster_id=hpc-a&uuid=7100_[4-5]";
  const json::array reports = data(range, "ada").as_array();
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].at("uuid"), "7101");
  EXPECT_EQ(reports[1].at("uuid"), "7102");
  EXPECT_THAT(body(range + "&format=text", "ada"), AllOf(HasSubstr("7101"), HasSubstr("7102")));
  EXPECT_EQ(get("/api/v1/" + range + "&format=html", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/units/report?cluster_id=hpc-a&uuid=7101&uuid=7102", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/units/compare?cluster_id=hpc-a&uuid=7100_4&uuid=7100_5", "ada").status,
            200);
  const std::string list = "units/list?cluster_id=hpc-a&columns=uuid&sort=uuid&order=asc&";
  EXPECT_THAT(first(list + "uuid=7100_[4,5],9000", "ada"), ElementsAre("7101", "7102", "9000"));
  EXPECT_THAT(first(list + "q=7100_4", "ada"), ElementsAre("7101"));
  EXPECT_THAT(first(list + "q=7100_[4-5]%20sweep", "ada"), ElementsAre("7101", "7102"));
  EXPECT_THAT(first(list + "q=7100", "ada"), ElementsAre("7100", "7101", "7102", "7103"));
  EXPECT_THAT(first(list + "q=8200", "ada"), ElementsAre("8200", "8201"));
  EXPECT_EQ(data("units/summary?cluster_id=hpc-a&q=7100_*", "ada").at("count"), 4);
}

TEST_F(Lists, ComeInPagesInBothDirections) {
  write_units(10);
  const std::string base = "units/list/admin?cluster_id=c&columns=uuid&sort=kwh&limit=4";
  Texts seen;
  std::string cursor;
  std::string previous;
  for (int page = 0; page < 3; ++page) {
    const json::value answer =
        json::parse(body(base + (cursor.empty() ? "" : "&cursor=" + cursor), "root"));
    for (const json::value& row : answer.at("data").at("rows").as_array()) {
      seen.emplace_back(row.at(0).as_string());
    }
    EXPECT_EQ(answer.as_object().contains("next"), page < 2);
    EXPECT_EQ(answer.as_object().contains("previous"), page > 0);
    cursor = page < 2 ? std::string(answer.at("next").as_string()) : "";
    previous = page > 0 ? std::string(answer.at("previous").as_string()) : "";
  }
  EXPECT_THAT(seen, ElementsAre("1009", "1008", "1007", "1006", "1005", "1004", "1003", "1002",
                                "1001", "1000"));
  EXPECT_THAT(first(base + "&cursor=" + previous), ElementsAre("1005", "1004", "1003", "1002"));
  const json::value answer = json::parse(body(base + "&cursor=" + previous, "root"));
  const std::string before(answer.at("previous").as_string());
  EXPECT_THAT(first(base + "&cursor=" + before), ElementsAre("1009", "1008", "1007", "1006"));
  EXPECT_FALSE(
      json::parse(body(base + "&cursor=" + before, "root")).as_object().contains("previous"));
  EXPECT_THAT(error("units/list/admin?sort=cpu&cursor=" + before), HasSubstr("'cursor'"));
}

TEST_F(Lists, AreFiltered) {
  write_units(10);
  const std::string base = "units/list/admin?columns=uuid&sort=uuid&cluster_id=c&";
  EXPECT_THAT(first(base + "kwh=3..5"), ElementsAre("1002", "1003", "1004"));
  EXPECT_THAT(first(base + "q=RUN%20100&kwh=..2"), ElementsAre("1000", "1001"));
  EXPECT_THAT(first(base + "q=nothing"), ElementsAre());
  EXPECT_THAT(first(base + "uuid=1004,1006"), ElementsAre("1004", "1006"));
  EXPECT_THAT(first(base + "partition=cpu"), ElementsAre());
  EXPECT_THAT(first(base + "mem=0.."), ElementsAre());  // not measured
  EXPECT_THAT(first("units/list/admin?columns=uuid&state=running&running&cluster_id=hpc-a"),
              ElementsAre("10"));
  // What its manager calls running may wait for its resources.
  store::ClusterUpdate update;
  update.cluster = {.id = "c", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + kHour};
  for (const char* uuid : {"2000", "2001"}) {
    model::Unit& unit = update.units.emplace_back(job(uuid, "ada", "fluids"));
    unit.state = "RUNNING";
    unit.started_at_ts = std::string_view(uuid) == "2000" ? kNow : 0;
    unit.ended_at_ts = 0;
  }
  write(update);
  EXPECT_THAT(first(base + "state=running&running"), ElementsAre("2000"));
  EXPECT_THAT(first(base + "state=RUNNING,failed&running"), ElementsAre("2000"));
  EXPECT_EQ(data("units/summary/admin?cluster_id=c&state=running&running").at("count"), 1);
  // An old id is found without a period.
  clock_.advance(std::chrono::hours(24 * 90));
  EXPECT_THAT(first("units/list/admin?columns=uuid&q=1004"), ElementsAre("1004"));
  EXPECT_THAT(first("units/list/admin?columns=uuid&q=1004&from=1775000000"), ElementsAre());
  EXPECT_THAT(error("units/list/admin?kwh=x"), HasSubstr("'kwh'"));
  EXPECT_THAT(error("units/list/admin?from=x"), HasSubstr("'from'"));
}

TEST_F(Lists, AreCsvThatNoSpreadsheetExecutes) {
  write_units(3, "=cmd|' /C calc'!A0");
  const auto response = get(
      "/api/v1/units/list/admin?cluster_id=c&sort=uuid&format=csv&columns=uuid,name,ended,kwh,gpu,"
      "advice",
      "root");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(header(response, "Content-Type"), "text/csv; charset=utf-8; header=present");
  EXPECT_EQ(response.body,
            "uuid,name,ended,kwh,gpu,advice\r\n"
            "1000,'=cmd|' /C calc'!A0,2025-12-31T23:59:59+0000,1,,\r\n"
            "1001,'=cmd|' /C calc'!A0,2025-12-31T23:59:58+0000,2,,\r\n"
            "1002,'=cmd|' /C calc'!A0,2025-12-31T23:59:57+0000,3,,\r\n");
}

TEST_F(Lists, StreamLongCsv) {
  write_units(2000, std::string(250, 'x'));
  const auto response = get("/api/v1/units/list/admin?cluster_id=c&format=csv", "root");
  EXPECT_EQ(response.status, 200);
  EXPECT_GT(response.body.size(), kWholeAnswer + 2 * kAnswerPiece);
  EXPECT_EQ(std::ranges::count(response.body, '\n'), 2001);
}

TEST_F(Lists, AreSmall) {
  write_units(200, "name_of_a_job_12");
  const std::string page = body("units/list/admin?cluster_id=c", "root");
  EXPECT_LT(page.size(), 35'000U);
  const std::string usual = body(
      "units/list/admin?cluster_id=c&columns=cluster_id,uuid,started,name,user,project,state,ended,"
      "wall,cpu,mem,gpu,kwh,grams,unused",
      "root");
  EXPECT_EQ(json::parse(usual).at("data").at("rows").as_array().size(), 100U);
  EXPECT_LT(usual.size(), 15'000U);
}

TEST_F(Lists, Have304sUntilSomethingIsWritten) {
  const std::string target = "/api/v1/units/list?from=1767139200&to=1767225600";
  const auto response = get(target, "ada");
  const std::string tag = header(response, "ETag");
  const auto again = request("GET", target, {{"X-Grafana-User", "ada"}, {"If-None-Match", tag}});
  EXPECT_EQ(again.status, 304);
  write_units(1);
  const auto later = request("GET", target, {{"X-Grafana-User", "ada"}, {"If-None-Match", tag}});
  EXPECT_EQ(later.status, 200);
}

TEST_F(Lists, SumUpWithFacetsAndCells) {
  write_units(4);
  EXPECT_THAT(
      body("units/summary/admin?cluster_id=c&facets=state,user,partition,advice&"
           "heat=cpu,mem&bins=10",
           "root"),
      HasSubstr(
          R"({"count":4,"running":0,"kwh":10,"cpu_kwh":10,"gpu_kwh":null,"grams":105,)"
          R"("measured":4,"cost":null,"core_hours":4,"core_hours_measured":4,"core_hours_used":1.65,)"
          R"("core_hours_with_energy":4,"gpu_hours":0,"gpu_hours_measured":0,"gpu_hours_used":0,)"
          R"("gpu_hours_with_energy":0,"idle_kwh":1,"idle_of_kwh":10,"idle_measured":4,)"
          R"("not_used_kwh":0.375,"not_used_of_kwh":8,"not_used_measured":3,)"
          R"("facets":{"state":[["COMPLETED",4,10]],)"
          R"("user":[["ada",4,10]],"partition":[["gpu",4,10]],"advice":[]},)"
          R"("heat":{"x":"cpu","y":"mem","bins":10,"cells":[]}})"));
  EXPECT_EQ(data("units/summary/admin?cluster_id=none").at("count"), 0);
  EXPECT_EQ(data("units/summary/admin?cluster_id=c&not_used=0..").at("count"), 3);
  EXPECT_EQ(data("units/summary/admin?cluster_id=c&not_used=0.2..").at("count"), 0);
  EXPECT_THAT(first("units/list/admin?cluster_id=c&columns=not_used&sort=not_used&limit=9"),
              ElementsAre("1.25E-1", "1.25E-1", "1.25E-1", "null"));
  EXPECT_TRUE(data("units/summary/admin?cluster_id=hpc-a").at("idle_kwh").is_null());
  EXPECT_TRUE(data("units/summary/admin?cluster_id=hpc-a").at("not_used_kwh").is_null());
  EXPECT_EQ(data("units/summary/admin?running&cluster_id=hpc-a").at("running"), 1);
  EXPECT_THAT(error("units/summary/admin?facets=foo"), HasSubstr("'facets'"));
  EXPECT_THAT(error("units/summary/admin?heat=cpu"), HasSubstr("'heat'"));
  EXPECT_THAT(error("units/summary/admin?heat=cpu,kwh"), HasSubstr("'heat'"));
  EXPECT_THAT(error("units/summary/admin?heat=cpu,mem&bins=51"), HasSubstr("'bins'"));
}

TEST_F(Lists, CostWhatTheSiteSays) {
  ApiOptions options;
  options.site.prices = {.kwh = 0.5, .core_hour = 0.25};
  make(std::move(options));
  write_units(2);
  EXPECT_THAT(first("units/list/admin?cluster_id=c&columns=cost&sort=kwh"),
              ElementsAre("1.25E0", "7.5E-1"));
  EXPECT_EQ(data("units/summary/admin?cluster_id=c").at("cost"), 2);
  // Of units whose energy is not known.
  EXPECT_THAT(first("units/list/admin?cluster_id=hpc-a&columns=cost&limit=1"), ElementsAre("null"));
  EXPECT_TRUE(data("units/summary/admin?cluster_id=hpc-a").at("cost").is_null());
  EXPECT_EQ(data("units/summary/admin?running").at("cost"), 2) << "as in the list";
}

TEST_F(Lists, OfUsageAreByDayAndMonth) {
  write_units(4);
  const std::string period = "from=1766966400&to=1767225599";  // 29 to 31 December
  EXPECT_EQ(
      json::serialize(data("usage/series/admin?cluster_id=c&field=kwh,units,idle_kwh&" + period)),
      R"x({"step":"day","groups":["(all)"],)x"
      R"("times":[1766966400000,1767052800000,1767139200000],)"
      R"("values":{"kwh":[[null,null,10]],"units":[[null,null,4]],"idle_kwh":[[null,null,1]]},)"
      R"("totals":{"kwh":[10],"units":[4],"idle_kwh":[1]}})");
  EXPECT_EQ(json::serialize(data("usage/series/admin?by=cluster&top=1&field=kwh,cost&step=month&" +
                                 period + "&previous")),
            R"x({"step":"month","groups":["c","(others)"],"times":[1764547200000],)x"
            R"("values":{"kwh":[[10],[null]],"cost":[[null],[null]]},)"
            R"("totals":{"kwh":[10,null],"cost":[null,null]},)"
            R"("previous":{"times":[1761955200000],"values":{"kwh":[[0],[0]],)"
            R"("cost":[[null],[null]]},"totals":{"kwh":[0,0],"cost":[null,null]}},)"
            R"("compared":{"days":31,"coverage":0,"energy_coverage":0,)"
            R"("now":{"kwh":[10,null],"cost":[null,null]},)"
            R"("before":{"kwh":[0,0],"cost":[null,null]}}})");
  // One of the four is from before it was counted what was not used.
  EXPECT_EQ(json::serialize(data("usage/series/admin?cluster_id=c&field=not_used_kwh,"
                                 "not_used_of_kwh,idle_of_kwh&previous&" +
                                 period)
                                .at("totals")),
            R"({"not_used_kwh":[3.75E-1],"not_used_of_kwh":[8],"idle_of_kwh":[10]})");
  const json::value none = data(
      "usage/series/admin?cluster_id=hpc-a&field=kwh,grams,idle_kwh,"
      "idle_of_kwh,not_used_kwh,not_used_of_kwh&previous&step=month&" +
      period);
  EXPECT_EQ(json::serialize(none.at("totals")),
            R"({"kwh":[null],"grams":[null],"idle_kwh":[null],"idle_of_kwh":[null],)"
            R"("not_used_kwh":[null],"not_used_of_kwh":[null]})");
  EXPECT_EQ(none.at("compared").at("now"), none.at("totals")) << "unknown is not 0";
  EXPECT_EQ(none.at("compared").at("not_used_coverage"), 0);
  const json::value components = data("usage/series/admin?by=component&cluster_id=c&" + period);
  EXPECT_EQ(json::serialize(components.at("totals")), R"({"kwh":[10,0]})");
  for (const char* wrong : {"step=week", "by=node", "top=0", "field=foo", "from=5&to=4",
                            "from=0&to=1767225600", "by=component&field=units"}) {
    EXPECT_THAT(error(std::string("usage/series/admin?") + wrong), HasSubstr("query parameter '"));
  }
}

TEST_F(Lists, OfUsageAreTablesToo) {
  ApiOptions options;
  options.site.currency = "EUR";
  make(std::move(options));
  write_units(4);
  const std::string asked =
      "/api/v1/usage/series/admin?by=cluster&field=kwh,grams,cost,idle_kwh,units&step=month&"
      "from=1764547200&to=1767225599&format=";
  const auto csv = get(asked + "csv", "root");
  EXPECT_EQ(csv.body,
            "month,cluster,energy (kWh),emissions (g CO2e),cost (EUR),"
            "idle energy of the reservation (kWh),units\r\n"
            "2025-12-01,c,10,105,,1,4\r\n"
            "2025-12-01,hpc-a,,,,,5\r\n"
            "2025-12-01,hpc-b,,,,,5\r\n");
  EXPECT_EQ(header(csv, "Content-Type"), "text/csv; charset=utf-8; header=present");
  EXPECT_EQ(header(csv, "Content-Disposition"), R"(attachment; filename="usage.csv")");
  const auto workbook = get(asked + "xlsx", "root");
  EXPECT_EQ(workbook.body.substr(0, 4), "PK\3\4");
  EXPECT_EQ(header(workbook, "Content-Type"),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet");
  EXPECT_EQ(header(workbook, "X-Content-Type-Options"), "nosniff");
  // Of one's own projects only, and in hours with their times.
  EXPECT_EQ(get("/api/v1/usage/series?step=month&field=units&from=1764547200&to=1767225599&"
                "by=project&format=csv",
                "eve")
                .body.find("fluids"),
            std::string::npos);
  EXPECT_THAT(get("/api/v1/usage/series/admin?step=hour&field=units&from=1767222000&to=1767222001&"
                  "format=csv",
                  "root")
                  .body,
              HasSubstr("2025-12-31T23:00:00+0000,"));
  EXPECT_THAT(error("usage/series/admin?format=pdf"), HasSubstr("'format'"));
  EXPECT_EQ(get(asked + "xlsx", "ada").status, 403);
}

TEST_F(Lists, TablesOfUsageHaveAMostOfRows) {
  store::ClusterUpdate update;
  update.cluster = {.id = "c", .manager = "slurm", .updaters = {}};
  update.window = {kNow - kHour, kNow};
  for (int i = 0; i < 26; ++i) {
    model::Unit unit = job(std::to_string(1000 + i), "ada", "project" + std::to_string(i));
    unit.started_at_ts = kNow - kHour;
    update.units.push_back(unit);
  }
  write(update);
  // 2000 days of 26 projects, and 1900 of them.
  const std::string asked =
      "usage/series/admin?cluster_id=c&by=project&field=units&format=csv&to=1767225599&from=";
  EXPECT_THAT(error(asked + "1594512000"), HasSubstr("more than 50000 rows: choose a shorter"));
  EXPECT_EQ(get("/api/v1/" + asked + "1603152000", "root").status, 200);
  EXPECT_EQ(get("/api/v1/" + asked + "1594512000&top=20", "root").status, 200);
}

TEST_F(Lists, CompareAYearWithTheSameDaysOfTheYearBefore) {
  constexpr std::int64_t kDay = 24 * kHour;
  std::int64_t written = kNow - 331 * kDay;
  const auto write_on = [&](std::int64_t day, int kwh) {
    store::ClusterUpdate update;
    update.cluster = {.id = "c", .manager = "slurm", .updaters = {}};
    update.window = {written, kNow + (day + 1) * kDay};
    written = update.window.end_ms;
    model::Unit unit = job(std::to_string(1000 + kwh), "ada", "fluids");
    unit.started_at_ts = written - 2 * kHour;
    unit.ended_at_ts = written - kHour;
    store::with(unit, model::Metric::kTotalCpuEnergyUsageKwh, {{"total", kwh}});
    update.units.push_back(unit);
    write(update);
  };
  write_on(-365 + 35, 1);  // 5 February 2025
  write_on(-365 + 45, 2);  // 15 February
  write_on(35, 4);         // 5 February 2026
  clock_.advance(std::chrono::hours(24 * 40));
  make({});
  const json::value year =
      data("usage/series/admin?cluster_id=c&step=month&from=1767225600&to=1798761599&previous");
  EXPECT_EQ(year.at("times").as_array().size(), 12U);
  const json::value& compared = year.at("compared");
  EXPECT_EQ(compared.as_object().count("idle_coverage"), 0U);
  // No idle energy was known a year ago.
  const json::value idle = data(
      "usage/series/admin?cluster_id=c&step=month&field=idle_kwh&from=1767225600&to=1798761599&"
      "previous");
  EXPECT_EQ(idle.at("compared").at("idle_coverage"), 0);
  EXPECT_EQ(compared.at("days"), 40);
  EXPECT_EQ(compared.at("now").at("kwh").at(0), 4);
  EXPECT_EQ(compared.at("before").at("kwh").at(0), 1);
  // A part of a month is compared with the same part of the month before, though it has ended.
  const auto march = [this](const std::string& to) {
    return data("usage/series/admin?cluster_id=c&step=month&from=1740787200&previous&to=" + to)
        .at("compared");
  };
  EXPECT_EQ(march("1741651199").at("days"), 10);
  EXPECT_EQ(march("1741651199").at("before").at("kwh").at(0), 1);
  EXPECT_EQ(march("1743465599").at("days"), 31);
  EXPECT_EQ(march("1743465599").at("before").at("kwh").at(0), 3);
}

TEST_F(Lists, TellWhatASiteHas) {
  ApiOptions options;
  options.site.clusters = {{.id = "c", .manager = "slurm", .series = true},
                           {.id = "hpc-a", .manager = "slurm", .series = false}};
  options.site.budgets = {{.cluster = "hpc-a", .project = "fluids", .kwh_per_month = 5},
                          {.cluster = "hpc-b", .project = "fluids", .kwh_per_month = 6}};
  make(std::move(options));
  write_units(1);
  const json::value site = data("site", "ada").at(0);
  EXPECT_EQ(
      json::serialize(site.at("clusters")),
      R"([{"id":"c","manager":"slurm","series":true,"nodes":true,"gpus":true,)"
      R"("partitions":true,"updated":1767225600000},{"id":"hpc-a","manager":"slurm","series":false,"nodes":false,)"
      R"("gpus":false,"partitions":false,"updated":1767225600000}])");
  // ada is a member of fluids on hpc-a only.
  EXPECT_EQ(site.at("budgets").as_array().size(), 1U);
  EXPECT_EQ(data("site", "root").at(0).at("budgets").as_array().size(), 2U);
}

}  // namespace
}  // namespace ceems::api
