#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cacct/commands.h"

namespace ceems::cacct {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string answer(const std::string& rows) {
  return R"({"status":"success","data":[)" + rows + "]}";
}

std::string text(std::string_view topic, const std::string& rows, bool by = false) {
  const auto result = insight_text(topic, by, answer(rows));
  return result ? *result : result.error().message;
}

TEST(InsightText, ListsIdleJobs) {
  const std::string shown = text(
      "idle",
      R"({"cluster_id":"hpc-a","uuid":"5120","user":"ada","project":"fluids","partition":"gpu",)"
      R"("since_ts":1794900000000,"idle_s":7800,"watts":612,"kwh":1.326,"cost":0.31,)"
      R"("exempt":null},{"uuid":"7101","array":"7100_4","user":"e\u001b[31mve","idle_s":200000,"watts":null})");
  EXPECT_THAT(shown, HasSubstr("2 idle jobs, 612 W\n"));
  EXPECT_THAT(shown, HasSubstr("2 h 10 min  612  1.33  0.31\n"));
  EXPECT_THAT(shown, HasSubstr("2 d 7 h    -     -     -\n"));
  EXPECT_THAT(shown, HasSubstr("\n  7100_4 "));
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  EXPECT_EQ(text("idle", ""), "No idle jobs right now.\n");
  EXPECT_THAT(text("idle", R"({"uuid":"1","watts":0.4})"), StartsWith("1 idle job, 0 W\n"));
}

TEST(InsightText, NamesClustersThatDidNotRespond) {
  const std::string some =
      R"({"data":[],"missing":[{"cluster_id":"a\u001b","reason":"unavailable"},)"
      R"({"cluster_id":"b","reason":"no_tsdb"}]})";
  EXPECT_EQ(insight_missing("idle", some),
            "cacct: cluster a\uFFFD: not in the list: its time-series server does not respond\n");
  EXPECT_EQ(insight_missing("nodes", some),
            "cacct: cluster a\uFFFD: no signs of broken hardware: its time-series server does not "
            "respond\n");
  EXPECT_EQ(insight_missing("idle", answer("")), "");
  EXPECT_EQ(insight_missing("idle", "no JSON"), "");
}

TEST(InsightText, NamesSickNodesWithTheirEvidence) {
  EXPECT_EQ(text("nodes", ""), "No node looks sick.\n");
  EXPECT_EQ(
      text("nodes",
           R"({"cluster_id":"hpc-a","kind":"node","node":"g14","class":"H\u001b100","score":100,)"
           R"("effect":0.061,"before":-0.002,"n":30,"users":9,"p":0.00021,"first":"2026-11-03",)"
           R"("failures":{"failed":6,"jobs":40,"users":3,"rate_of_class":0.0123,"p":9.4786e-6,)"
           R"("first":"2026-11-04"},"hints":["throttle"],"signs":{"throttle":5400},)"
           R"("suggested":"scontrol update nodename=g14 state=drain reason=\"x\""},)"
           R"({"cluster_id":"hpc-a","kind":"step","class":"H100","effect":-0.08,)"
           R"("first":"2026-11-05","nodes":["g1","g2","g3"]})"),
      "g14 (hpc-a, H\uFFFD100), score 100\n"
      "  power +6.3 % against its peers in 30 jobs of 9 users, -0.2 % before; since 2026-11-03, p "
      "= 0.0002\n"
      "  6 of 40 jobs failed, of 3 users; elsewhere 1.2 %; since 2026-11-04, p = 9e-06\n"
      "  seconds throttled: 5400 in the last day\n"
      "  To drain it:\n"
      "    scontrol update nodename=g14 state=drain reason=\"x\"\n"
      "Many nodes of H100 (hpc-a) draw -7.7 % since 2026-11-05, as with a new firmware: g1, g2, "
      "g3\n");
  const auto csv = insight_csv("nodes", false,
                               answer(R"({"cluster_id":"hpc-a","kind":"node","node":"g14",)"
                                      R"("class":"H100","score":40,"effect":0.061})"));
  EXPECT_EQ(csv.value(),
            "cluster_id,kind,node,class,score,effect,before,n,users,p,first\r\n"
            "hpc-a,node,g14,H100,40,0.061,,,,,\r\n");
}

TEST(InsightText, SaysHowBudgetsStand) {
  EXPECT_EQ(
      text("budgets", R"({"project":"fluids","cluster_id":"hpc-a","unit":"kgco2","amount":1500,)"
                      R"("used":1104.4,"used_share":0.736,"burn":3.44,"forecast":[1420,1580],)"
                      R"("period":"2026","state":"warn_0.5"})"),
      "fluids (hpc-a), 2026: 1,104 of 1,500 kg CO2e (74 %); heading for 1,420 to 1,580\n");
  EXPECT_EQ(text("budgets", R"({"project":"fluids","cluster_id":null,"unit":"kwh","amount":250,)"
                            R"("used":263,"used_share":1.052,"burn":9.7,"forecast":[287,301],)"
                            R"("period":"2026-11","state":"over"})"),
            "fluids, 2026-11: over budget, 263 of 250 kWh (105 %); heading for 287 to 301\n");
  EXPECT_EQ(text("budgets", R"({"project":"*","cluster_id":null,"unit":"kwh","amount":1200,)"
                            R"("used":60,"used_share":0.05,"period":"2026","state":"ok"})"),
            "all projects, 2026: 60 of 1,200 kWh (5 %)\n");
  EXPECT_EQ(
      text("budgets", R"({"project":"p","cluster_id":null,"unit":"cost","amount":5,"used":null,)"
                      R"("forecast":[null,null],"period":"2026-11","state":"unknown"})"),
      "p, 2026-11: unknown of 5 cost\n");
}

TEST(InsightText, ShowsTheBillAsATable) {
  const std::string shown = text(
      "bill", R"({"part":"active","kwh":61240,"share":0.519,"how":"measured"},)"
              R"({"part":"nodes","kwh":88700.4,"share":0.7517,"how":"measured","coverage":0.97},)"
              R"({"part":"other","kwh":null,"share":null,"how":null},)"
              R"({"part":"unexplained","kwh":-4000,"share":-0.034,"how":"derived",)"
              R"("hints":[{"kind":"psu_losses","kwh":8426.5}]},)"
              R"({"part":"meter","kwh":118000,"share":1,"how":"measured"})");
  EXPECT_THAT(shown, HasSubstr("  jobs, active use                  61,240   52 %  measured\n"));
  EXPECT_THAT(shown,
              HasSubstr("  = compute nodes                   88,700   75 %  measured, 97 % of"));
  EXPECT_THAT(shown, HasSubstr("  unexplained                       -4,000   -3 %  derived\n"));
  EXPECT_THAT(shown, HasSubstr("  storage, network, service nodes        -      -\n"));
  EXPECT_THAT(shown, HasSubstr("about 8,426 kWh: losses of power supplies"));
  EXPECT_EQ(shown.find("BILLED"), std::string::npos);
  EXPECT_THAT(
      text("bill", R"({"part":"meter","kwh":400,"share":null,"how":"measured","hours":0.5})"),
      HasSubstr("Nodes were read in 50 % of these hours, too few to compare"));
}

TEST(InsightText, ShowsSharesAndSaysWhatIsUnknown) {
  const std::string rows =
      R"({"value":"fluids","units":12,"kwh":16,"measured_kwh":16,"idle_kwh":4,"share":0.25,)"
      R"("not_used_of_kwh":8,"not_used_kwh":0.8,"not_used_share":0.1},)"
      R"({"value":"old","units":1,"kwh":1,"idle_kwh":0.5,"share":0.5,"not_used_kwh":null,)"
      R"("not_used_share":null})";
  const std::string shown = text("idle", rows, true);
  EXPECT_THAT(shown, HasSubstr("  JOBS    KWH  IDLE POWER KWH  SHARE  NOT USED KWH  SHARE\n"));
  EXPECT_THAT(shown,
              HasSubstr("  fluids    12  16.00            4.00   25 %          0.80   10 %\n"));
  EXPECT_THAT(shown,
              HasSubstr("  old        1   1.00            0.50   50 %       unknown      -\n"));
  EXPECT_EQ(*insight_csv("idle", true, answer(rows)),
            "value,units,kwh,measured_kwh,idle_kwh,share,not_used_of_kwh,not_used_kwh,"
            "not_used_share\r\nfluids,12,16,16,4,0.25,8,0.8,0.1\r\nold,1,1,,0.5,0.5,,,\r\n");
}

TEST(InsightText, ShowsWhatHelped) {
  const std::string rows =
      R"({"cluster_id":"hpc-a","project":"fluids","rule":"gpu-unused","kinds":3,"runs":41,)"
      R"("core_hours":0,"gpu_hours":1230.4,"gib_hours":0,"kwh":210.42},)"
      R"({"cluster_id":"hpc-a","project":"\u001b[31m","rule":"oom","kinds":1,"runs":2,)"
      R"("core_hours":-0.2,"gpu_hours":0,"gib_hours":0,"kwh":null})";
  const std::string shown = text("helped", rows);
  EXPECT_THAT(shown, HasSubstr("after a suggestion, about 210.4 kWh\n"));
  EXPECT_THAT(shown, HasSubstr("  fluids   gpu-unused      3    41           0      1,230"));
  EXPECT_EQ(shown.find('\033'), std::string::npos);
  EXPECT_EQ(text("helped", ""), "No suggestion was followed.\n");
  EXPECT_THAT(*insight_csv("helped", false, answer(rows)),
              HasSubstr("\r\nhpc-a,fluids,gpu-unused,3,41,0,1230.4,0,210.42\r\n"));
}

TEST(InsightText, ShowsHowOftenSuggestionsDidNotHelp) {
  const std::string rows =
      R"({"rule":"mem-excess","answers":40,"people":12,"no":3,"not_applicable":5,"false_share":0.2},)"
      R"({"rule":"\u001b[31m","answers":5,"people":5,"no":0,"not_applicable":0,"false_share":0})";
  const std::string shown = text("feedback", rows);
  EXPECT_THAT(shown, HasSubstr("  mem-excess       40      12         20 %\n"));
  EXPECT_THAT(shown, HasSubstr("          0 %\n"));
  EXPECT_EQ(shown.find('\033'), std::string::npos);
  EXPECT_EQ(text("feedback", ""), "No suggestion has answers of five people yet.\n");
  EXPECT_THAT(*insight_csv("feedback", false, answer(rows)),
              HasSubstr("rule,answers,people,no,not_applicable,false_share\r\n"
                        "mem-excess,40,12,3,5,0.2\r\n"));
}

TEST(InsightText, SaysWhichDeviceIsSlowAndWhy) {
  const std::string rows =
      R"({"node":"g14","device":"3","metric":"gpu_clock","z":-6.1,"deviation":-0.11,)"
      R"("windows":"8/10","kind":"slow_device","cause":"hardware_thermal","your_code":false,)"
      R"("waiting_kwh_max":0.41},)"
      R"({"node":"n1","device":null,"metric":"activity","z":9,"deviation":0.25,"windows":"10/10",)"
      R"("kind":"imbalance","cause":null,"your_code":true,"waiting_kwh_max":null},)"
      R"({"node":"n2","device":null,"metric":"activity","z":-9,"deviation":-0.4,"windows":"6/10",)"
      R"("kind":"waits","cause":null,"your_code":null,"waiting_kwh_max":0},)"
      R"({"node":"n\u001b[31m3","device":null,"metric":"symbol_error","z":null,"deviation":null,)"
      R"("windows":"9/10","kind":"fabric_or_disk","cause":"symbol_error","your_code":false})";
  EXPECT_EQ(
      text("stragglers", rows),
      "g14, GPU 3 runs 11 % below its peers: too hot (in 8/10 windows). Not your code. "
      "Waiting took up to 0.41 kWh.\n"
      "n1 works 25 % more than its peers, which wait for it (in 10/10 windows).\n"
      "n2 works 40 % less than its peers: it waits, or has less to do (in 6/10 windows).\n"
      "n\uFFFD[31m3 has errors that its peers do not have: errors of its network link (in 9/10 "
      "windows). Not your code.\n");
  EXPECT_EQ(text("stragglers", ""), "No node or GPU differs from its peers.\n");
  EXPECT_THAT(*insight_csv("stragglers", false, answer(rows)),
              StartsWith("node,device,metric,z,deviation,windows,kind,cause,your_code,"
                         "waiting_kwh_max\r\n"
                         "g14,3,gpu_clock,-6.1,-0.11,8/10,slow_device,hardware_thermal,false,"
                         "0.41\r\nn1,,activity,9,0.25,10/10,imbalance,,true,\r\n"));
  const std::string list =
      R"({"cluster_id":"hpc-a","uuid":"4711","user":"ada","project":"fluids","partition":"gpu",)"
      R"("node":"g14","device":"3","metric":"gpu_clock","z":-6.1,"deviation":-0.11,)"
      R"("windows":"8/10","kind":"slow_device","cause":null,"your_code":false,)"
      R"("waiting_kwh_max":null},{"uuid":"4\u001b12","user":"","node":"n1","kind":"waits",)"
      R"("windows":"6/10","deviation":-0.4})";
  EXPECT_EQ(text("stragglers", list),
            "4711 (ada, fluids): g14, GPU 3 runs 11 % below its peers (in 8/10 windows).\n"
            "4\uFFFD12: n1 works 40 % less than its peers: it waits, or has less to do (in 6/10 "
            "windows).\n");
  EXPECT_THAT(*insight_csv("stragglers", true, answer(list)),
              HasSubstr("cluster_id,uuid,user,project,partition,node,device,metric,z,deviation,"
                        "windows,kind,cause,your_code,waiting_kwh_max\r\nhpc-a,4711,ada,fluids,"
                        "gpu,g14,3,gpu_clock,-6.1,-0.11,8/10,slow_device,,false,\r\n"));
}

TEST(InsightText, SaysWhoSlowsWhomDown) {
  const std::string rows =
      R"({"cluster_id":"hpc-a","kind":"node","node":"c017","suspect":"5102","activity":"bytes",)"
      R"("victim":"5098","signal":"cpi","with":1.31,"without":0.83,"bins":[40,80],"times":7},)"
      R"({"cluster_id":"hpc-a","kind":"storm","file_system":"scratch","suspect":"5102",)"
      R"("victims":37,"victims_of":"file_system","rate":21000,"of":"metadata","share":0.86,)"
      R"("seconds":1200},{"kind":"storm","file_system":"","suspect":"7","victims":8,)"
      R"("victims_of":"cluster","rate":90,"of":"metadata","share":0.6,"seconds":600},)"
      R"({"cluster_id":"hpc-a","kind":"top","file_system":"","suspect":"\u001b[31m","bytes":null,)"
      R"("requests":12.4,"metadata":null,"share":0.12})";
  EXPECT_EQ(
      text("neighbours", rows),
      "On c017, 5102 probably slows 5098 down: 1.31 cycles per instruction while 5102 reads and "
      "writes much, 0.83 otherwise (40 and 80 minutes, 7 changes).\n"
      "I/O storm on scratch: 5102 has 86 % of the requests of metadata, 21,000/s, for 20 min; "
      "37 jobs wait.\n"
      "I/O storm: 7 has 60 % of the requests of metadata, 90/s, for 10 min; 8 jobs of the cluster "
      "wait.\n"
      "FILE SYSTEM  JOB    BYTES/S  REQUESTS/S  METADATA/S  SHARE\n"
      "(unknown)    \uFFFD[31m        -          12           -   12 %\n");
  EXPECT_EQ(text("neighbours",
                 R"({"kind":"node","victim":"5098","signal":"io","with":0.4,"without":0.1,)"
                 R"("bins":[9,12],"times":3},{"kind":"storm","file_system":"","victim":"5098",)"
                 R"("of":"requests","share":0.6,"seconds":600})"),
            "A neighbour probably slows 5098 down: it waits for I/O for 40 % of the time while the "
            "neighbour is active, 10 % otherwise (9 and 12 minutes, 3 changes).\n"
            "5098 waits for a file system: another job has 60 % of the requests, for 10 min.\n");
  EXPECT_EQ(text("neighbours", ""), "No job is known to slow others down.\n");
  EXPECT_THAT(*insight_csv("neighbours", false, answer(rows)),
              HasSubstr("\r\nhpc-a,node,c017,5098,5102,cpi,bytes,1.31,0.83,7,,,,,,,,,,\r\n"));
}

TEST(InsightCsv, IsSafeForSpreadsheets) {
  EXPECT_EQ(*insight_csv("bill", false,
                         answer(R"({"part":"=1+1","kwh":-1.5,"share":null,"how":"a,\"b"})")),
            "part,kwh,share,how,billed_kwh\r\n'=1+1,-1.5,,\"a,\"\"b\",\r\n");
  EXPECT_FALSE(insight_csv("bill", false, "no JSON"));
  EXPECT_FALSE(insight_text("bill", false, R"({"data":null})"));
}

}  // namespace
}  // namespace ceems::cacct
