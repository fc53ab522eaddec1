// A generated year with gaps, two contracts and a meter that fails, as reports in all formats.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/durations.h"
#include "base/time/time_zone.h"
#include "model/unit.h"
#include "store/factory/open_database.h"
#include "store/nodes.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"
#include "tool/fake_console.h"

namespace ceems::tool {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

constexpr std::int64_t kKwhUnits = 1'000'000'000;  // of a kWh
constexpr int kFirstDay = -6;                      // 2023-12-26
constexpr int kDaysOfYear = 366;                   // 2024

class ReportCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_dir = std::make_unique<testing::TempDir>();
    shared_zone = TimeZone::find("Europe/Berlin").value_or(TimeZone());
    testing::FakeClock clock;
    auto opened =
        store::open_database({.directory = path("").string(), .time_zone = "Europe/Berlin"}, clock);
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_TRUE((*opened)->writer().lead().value());
    for (int day = kFirstDay; day < kDaysOfYear; ++day) {
      write_day((*opened)->writer(), day);
    }
    opened->reset();
    import_bills();
    write_files();
  }
  static void TearDownTestSuite() {
    shared_dir.reset();
    shared_reports.clear();
  }

  static std::filesystem::path path(const std::string& name) { return shared_dir->path() / name; }

  /// The first moment of a day of 2024, counted from 0.
  static std::int64_t start_of(int day) {
    constexpr std::int64_t kNewYear = 1'704'063'600'000;  // 2024-01-01T00:00:00+01:00
    return shared_zone.day_start(kNewYear + day * kDayMs + kDayMs / 2);
  }

  static model::Unit unit(int day, const std::string& project, double kwh, double g_kwh) {
    model::Unit unit;
    unit.resource_manager = "slurm";
    unit.uuid = fmt::format("{}{}", project, day + 1000);
    unit.project = project;
    unit.groupname = "phys";
    unit.username = project == "fluids" ? "ada" : "eve";
    unit.created_at_ts = unit.started_at_ts = start_of(day) + kHourMs;
    unit.created_at = unit.started_at = shared_zone.local_with_offset(unit.started_at_ts);
    unit.ended_at_ts = start_of(day) + 9 * kHourMs;
    unit.ended_at = shared_zone.local_with_offset(unit.ended_at_ts);
    unit.state = "COMPLETED";
    unit.allocation = R"({"cpus":64})";
    unit.total_time_seconds = {{"walltime", 8 * 3600.0},
                               {"alloc_cputime", 64 * 8 * 3600.0},
                               {"alloc_gputime", project == "optics" ? 8 * 3600.0 : 0.0}};
    const auto set = [&unit](model::Metric metric, model::MetricMap map) {
      unit.metric(metric) = std::move(map);
      unit.has_metric[static_cast<std::size_t>(metric)] = true;
    };
    set(model::Metric::kTotalCpuEnergyUsageKwh, {{"total", kwh}});
    if (g_kwh > 0) {
      set(model::Metric::kTotalCpuEmissionsGms, {{"rte_total", kwh * g_kwh}});
    }
    return unit;
  }

  static void write_day(store::Writer& writer, int day) {
    const std::int64_t start = start_of(day);
    const std::int64_t end = start_of(day + 1);
    store::NodeUpdate nodes{.cluster_id = "hpc", .start_ms = start, .end_ms = end, .day_ms = start};
    for (const auto& [node, kwh] : {std::pair("n1", 12.1), std::pair("g1", 30.7)}) {
      if (day >= 200 && day < 203) {
        break;  // three days are lost
      }
      const bool gpus = std::string_view(node) == "g1";
      const auto energy = static_cast<std::int64_t>((kwh + 0.01 * ((day + 70) % 7)) * kKwhUnits);
      nodes.energies.push_back({.node = node,
                                .energy = energy,
                                .idle = energy / 5,
                                .system = energy / 31,
                                .unallocated = energy / 9,
                                .modelled = gpus ? energy / 3 : 0,
                                .covered_ms = end - start});
      nodes.facts.push_back({.node = node,
                             .node_class = gpus ? "gpu, 4 × H100" : "cpu",
                             .source = "redfish",
                             .cpus = gpus ? 64 : 128,
                             .gpus = gpus ? 4 : 0});
    }
    const auto noted = writer.write_nodes(nodes);
    ASSERT_TRUE(noted) << noted.error().message;
    if (day % 6 != 0) {
      return;
    }
    store::ClusterUpdate update;
    update.cluster = {.id = "hpc", .manager = "slurm", .updaters = {}};
    update.window = {.start_ms = start_of(day - 5), .end_ms = end};
    if (day < 100 || day >= 107) {
      update.units = {unit(day, "fluids", 3.3 + 0.001 * day, 50 + day % 11),
                      // Some energy has no factor.
                      unit(day, "optics", 7.7, day % 30 == 0 ? 0 : 60 + day % 5)};
      update.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada"}},
                                                    {.name = "optics", .users = {"eve"}}};
    }
    const auto written = writer.write(update);
    ASSERT_TRUE(written) << written.error().message;
  }

  static std::int64_t month_start(int month) {
    return shared_zone
        .parse_local(fmt::format("{}-{:02}-01T00:00:00", 2024 + month / 12, month % 12 + 1))
        .value_or(0);
  }

  static void import_bills() {
    std::vector<store::Bill> bills;
    for (int month = 0; month < 12; ++month) {
      bills.push_back({.start_ms = month_start(month),
                       .end_ms = month_start(month + 1),
                       .energy = (1700 + month) * kKwhUnits + 123'456'789,
                       // The price rises in summer; the first contract ends then.
                       .cost = month < 6 ? "340.5" : "425.25",
                       .currency = "EUR",
                       .kgco2 = month < 6 ? "85" : ""});
    }
    const auto added = store::import_bills(
        {.directory = path("").string(), .time_zone = "Europe/Berlin"}, bills, false);
    ASSERT_TRUE(added) << added.error().message;
  }

  static void write_files() {
    std::ofstream total(path("total.csv"));
    std::ofstream it(path("it.csv"));
    std::ofstream water(path("water.csv"));
    for (std::ofstream* file : {&total, &it, &water}) {
      *file << "time,value\n";
    }
    for (int day = kFirstDay; day < kDaysOfYear; ++day) {
      const std::int64_t end = start_of(day + 1);
      const std::string date = shared_zone.day(start_of(day)).substr(0, 10);
      const bool fails = day >= 210 && day < 217;  // the meter of the IT, for a week
      total << date << ","
            << (fails ? 4.8 : 2.4) * static_cast<double>(end - start_of(day)) / kHourMs << "\n";
      for (std::int64_t hour = start_of(day); hour < end && !fails; hour += kHourMs) {
        it << TimeZone().local(hour) << "Z,2\n";
      }
      water << date << ",0.0864\n";
    }
    std::ofstream(path("facility.yml")) << R"(
meters:
  - {kind: total, csv: total.csv, every: 1d}
  - {kind: it, csv: it.csv, category: "PDU output"}
  - {kind: water, csv: water.csv, every: 1d}
transmission_losses:
  - {from: 2024-01-01, to: 2024-06-30, g_kwh: 3, source: "operator, 2023", date: 2023-12}
  - {from: 2024-07-01, g_kwh: 4, source: "operator, 2024", date: 2024-06}
declared: {floor_area_m2: 420}
)";
    std::ofstream(path("embodied.yml")) << R"(
classes:
  - {class: cpu, kgco2: 1000, lifetime_years: 5, source: "maker's PCF", date: 2022-01}
  - {class: "gpu, 4 × H100", kgco2: 4000, lifetime_years: 4, gpu_share: 0.8, source: estimate}
)";
    std::ofstream(path("ceems.yml")) << fmt::format(R"(
ceems_api_server:
  data: {{path: '{}', time_zone: Europe/Berlin}}
  ui: {{name: 'Centre <b>', pue: 1.2, currency: EUR}}
  accounting:
    market:
      - {{from: 2024-07-01, to: 2024-09-30, g_kwh: 120, source: "contract 2, no. 7"}}
      - {{from: 2024-10-01, g_kwh: 400, source: "residual mix 2023"}}
clusters:
  - {{id: hpc, manager: slurm}}
)",
                                                    path("").string());
  }

  /// A report, which is printed once for all tests.
  static const std::string& report(const std::string& kind,
                                   const std::string& period,
                                   const std::string& format,
                                   int status = 0) {
    std::string& text = shared_reports[fmt::format("{} {} {}", kind, period, format)];
    if (!text.empty()) {
      return text;
    }
    FakeConsole console;
    EXPECT_EQ(run_tool({"report", kind, "--period", period, "--format", format, "--config.file",
                        path("ceems.yml").string()},
                       console),
              status)
        << console.err;
    text = status == 0 ? console.out : console.err;
    return text;
  }

  static double value_of(const json::value& document, std::string_view id) {
    for (const json::value& line : document.at("lines").as_array()) {
      if (line.at("id").as_string() == id && line.at("value").is_number()) {
        return line.at("value").to_number<double>();
      }
    }
    ADD_FAILURE() << id << " has no value";
    return 0;
  }

  static std::unique_ptr<testing::TempDir> shared_dir;
  static TimeZone shared_zone;
  static std::map<std::string, std::string> shared_reports;
};

std::unique_ptr<testing::TempDir> ReportCommand::shared_dir;
TimeZone ReportCommand::shared_zone;
std::map<std::string, std::string> ReportCommand::shared_reports;

TEST_F(ReportCommand, AnotherProgramComputesTheSameInAllFormats) {
  for (const auto& [kind, period] :
       {std::pair("year", "2024"), std::pair("month", "2024-07"), std::pair("ghg", "2024"),
        std::pair("eed", "2024"), std::pair("sci", "2024"), std::pair("green-disc", "2024")}) {
    std::string files;
    // Formats print one document: the reports of a month show that all print it alike.
    const std::vector<std::string> formats =
        std::string_view(kind) == "month"
            ? std::vector<std::string>{"json", "csv", "xlsx", "md", "html"}
            : std::vector<std::string>{"json"};
    for (const std::string& format : formats) {
      const std::string file = path(fmt::format("{}.{}", kind, format)).string();
      std::ofstream(file, std::ios::binary) << report(kind, period, format);
      files += " '" + file + "'";
    }
    const std::string command =
        fmt::format("python3 '{}/report/recompute.py'{}", CEEMS_TEST_ROOT, files);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT(concurrency-mt-unsafe)
  }
}

TEST_F(ReportCommand, PartsAndTheUnexplainedAreTheMeter) {
  const json::value year = json::parse(report("year", "2024", "json"));
  double billed = 0;
  for (int month = 0; month < 12; ++month) {
    billed += 1700 + month + 0.123456789;
  }
  const double meter = value_of(year, "meter");
  EXPECT_NEAR(meter, billed, 1e-6);
  const double nodes = value_of(year, "active") + value_of(year, "reserved_idle") +
                       value_of(year, "system") + value_of(year, "unallocated");
  EXPECT_NEAR(nodes, value_of(year, "nodes"), 1e-6);
  EXPECT_NEAR(value_of(year, "known"), nodes * 1.2, 1e-6);
  EXPECT_NEAR(value_of(year, "known") + value_of(year, "unexplained"), meter, 1e-6 * meter);
  EXPECT_NEAR(value_of(year, "energy"), meter, 1e-6);
  double expected = 0;
  for (int day = 0; day < kDaysOfYear; ++day) {
    expected += day >= 200 && day < 203 ? 0 : 12.1 + 30.7 + 0.02 * (day % 7);
  }
  EXPECT_NEAR(nodes, expected, 1e-6);
}

TEST_F(ReportCommand, IndicatorsAreOverTheHoursThatBothMetersHave) {
  // In the week in which the meter of the IT fails, the other one counts twice as much.
  const json::value year = json::parse(report("year", "2024", "json"));
  EXPECT_NEAR(value_of(year, "pue"), 1.2, 1e-9);
  EXPECT_NEAR(value_of(year, "wue"), 1.8, 1e-2);  // a day has 23 or 25 hours twice
  const std::string& text = report("year", "2024", "json");
  EXPECT_THAT(text, HasSubstr("over the 8616 hours in which both meters were read"));
  EXPECT_THAT(text, HasSubstr("0.98087431694"));  // 8616 / 8784
  EXPECT_THAT(text, HasSubstr("IT metered at: PDU output"));
}

TEST_F(ReportCommand, BothMethodsOfScope2AreStated) {
  const json::value ghg = json::parse(report("ghg", "2024", "json"));
  double market = 0;
  for (int month = 0; month < 12; ++month) {
    const double kwh = 1700 + month + 0.123456789;
    market += month < 6 ? 85 : kwh * (month < 9 ? 0.12 : 0.4);
  }
  EXPECT_NEAR(value_of(ghg, "scope2_market"), market, 1e-6);
  const double kwh = value_of(ghg, "meter");
  const double location = value_of(ghg, "scope2_location");
  EXPECT_GT(location, kwh * 0.05);
  EXPECT_LT(location, kwh * 0.065);
  // A year of 5, and one of 4: nodes whose readings are lost for three days are still there.
  const double nodes = 366 * 24.0;
  EXPECT_NEAR(value_of(ghg, "embodied"), nodes * (1000 / 43800.0 + 4000 / 35040.0), 1e-6);
  EXPECT_NEAR(value_of(ghg, "embodied_projects") + value_of(ghg, "embodied_unallocated"),
              value_of(ghg, "embodied"), 1e-6);
  const std::string& text = report("ghg", "2024", "json");
  EXPECT_THAT(text, HasSubstr("contract 2, no. 7; imported bills; residual mix 2023"));
  EXPECT_THAT(text, HasSubstr("operator, 2023; operator, 2024"));
}

TEST_F(ReportCommand, WhatIsNotKnownIsANamedEmptyField) {
  const json::value eed = json::parse(report("eed", "2024", "json"));
  EXPECT_NEAR(value_of(eed, "total_kwh"), 366 * 24 * 2.4 + 7 * 24 * 2.4, 1e-6);
  EXPECT_EQ(value_of(eed, "floor_area_m2"), 420);
  int empty = 0;
  for (const json::value& line : eed.at("lines").as_array()) {
    empty += line.at("value").is_null() ? 1 : 0;
    EXPECT_EQ(line.at("value").is_null(), line.at("how").as_string() == "missing");
  }
  EXPECT_EQ(empty, 17 + 2 + 2);  // declared, meters of heat and renewable energy, ERF and REF
}

TEST_F(ReportCommand, RefusesWhatItCannotReport) {
  EXPECT_THAT(report("tax", "2024", "md", 1),
              HasSubstr("expected one kind of report: year, month, ghg, eed, sci, green-disc"));
  EXPECT_THAT(report("year", "2024-02", "md", 1), HasSubstr("'2024-02' is not a year"));
  EXPECT_THAT(report("month", "2024", "md", 1), HasSubstr("'2024' is not a month"));
  EXPECT_THAT(report("year", "9990", "md", 1), HasSubstr("'9990' has not begun"));
  EXPECT_THAT(report("year", "24", "md", 1), HasSubstr("expected a year or month"));
  EXPECT_THAT(report("year", "2024", "pdf", 1), HasSubstr("none of md, csv, json, xlsx and html"));
}

TEST_F(ReportCommand, WithoutAConfigurationOnlyTheDatabaseIsKnown) {
  FakeConsole console;
  EXPECT_EQ(run_tool({"report", "ghg", "--period", "2024", "--format", "json", "--db",
                      path("ceems.db").string()},
                     console),
            0)
      << console.err;
  const json::value ghg = json::parse(console.out);
  EXPECT_GT(value_of(ghg, "nodes"), 15000);
  EXPECT_THAT(console.out, HasSubstr("embodied.yml is missing; nothing is assumed"));
}

}  // namespace
}  // namespace ceems::tool
