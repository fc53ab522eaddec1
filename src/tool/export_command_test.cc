#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/unit.h"
#include "store/factory/open_database.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"
#include "tool/fake_console.h"

namespace ceems::tool {
namespace {

constexpr std::int64_t kEnd = 1'767'225'600'000;  // 2026-01-01T00:00:00Z
constexpr std::int64_t kHour = 3'600'000;

class ExportCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened =
        store::open_database({.directory = dir_.path().string(), .time_zone = "UTC"}, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    database_ = std::move(*opened);
  }

  static model::Unit unit(const std::string& uuid, std::int64_t end_ms) {
    model::Unit unit;
    unit.resource_manager = "slurm";
    unit.uuid = uuid;
    unit.name = "run";
    unit.project = "fluids";
    unit.groupname = "phys";
    unit.username = "ada";
    unit.created_at_ts = unit.started_at_ts = kEnd - 10 * kHour;
    unit.created_at = unit.started_at = "2025-12-31T14:00:00+0000";
    unit.ended_at_ts = end_ms;
    unit.ended_at = end_ms > 0 ? "e" : "Unknown";
    unit.state = end_ms > 0 ? "COMPLETED" : "RUNNING";
    unit.allocation = R"({"cpus":2})";
    return unit;
  }

  void add(std::vector<model::Unit> units, const std::string& cluster = "hpc") {
    store::ClusterUpdate update;
    update.cluster = {.id = cluster, .manager = "slurm", .updaters = {}};
    update.window = {.start_ms = window_, .end_ms = window_ + kHour};
    window_ += kHour;
    update.units = std::move(units);
    const auto written = database_->writer().write(update);
    ASSERT_TRUE(written) << written.error().message;
  }

  /// What is printed, without what is said.
  std::string run(std::vector<std::string> arguments, int status = 0) {
    arguments.insert(arguments.begin(), {"export", "--db", dir_.path().string()});
    FakeConsole console;
    EXPECT_EQ(run_tool(arguments, console), status) << console.err;
    said_ = console.err;
    return console.out;
  }

  /// The first cell of each row.
  static std::string ids(const std::string& csv) {
    std::string out;
    for (std::size_t begin = 0; begin < csv.size();) {
      const std::size_t end = csv.find('\n', begin);
      const std::string line = csv.substr(begin, end - begin);
      const std::size_t first = line.find(',') + 1;
      out += line.substr(first, line.find(',', first) - first) + " ";
      begin = end + 1;
    }
    return out;
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  std::unique_ptr<store::Database> database_;
  std::int64_t window_ = kEnd;
  std::string said_;
};

TEST_F(ExportCommand, PrintsUnitsInTheOrderOfTheirEnds) {
  add({unit("3", kEnd + 1000), unit("1", kEnd), unit("2", kEnd), unit("4", 0)});
  add({unit("5", kEnd - 1)}, "other");
  EXPECT_EQ(ids(run({"--format", "csv"})), "id 5 1 2 3 ");
  EXPECT_EQ(said_, "4 units\n");
  EXPECT_EQ(ids(run({"--format", "csv", "--from", "2026-01-01"})), "id 1 2 3 ");
  EXPECT_EQ(ids(run({"--format", "csv", "--until", "2026-01-01"})), "id 5 ");
  EXPECT_EQ(ids(run({"--format", "csv", "--from", "2026-01-01T00:00:00Z", "--until",
                     "2026-01-01T01:00:01+01:00"})),
            "id 1 2 ");
  EXPECT_EQ(ids(run({"--format", "csv", "--cluster-id", "other"})), "id 5 ");
}

TEST_F(ExportCommand, PrintsSumsThatAreLeftAtTheEnd) {
  add({unit("1", kEnd - 1), unit("2", kEnd), unit("3", kEnd + 1)});
  const std::string out = run(
      {"--format", "focus", "--provider", "HPC", "--currency", "EUR", "--price-per-kwh", "0.2"});
  EXPECT_EQ(std::ranges::count(out, '\n'), 3) << out;  // a header and two days
  EXPECT_EQ(said_, "3 units\n");
}

TEST_F(ExportCommand, ReadsAllPages) {
  std::vector<model::Unit> units;
  for (int i = 0; i < 5'003; ++i) {
    units.push_back(unit(std::to_string(i), kEnd + i % 3));
  }
  add(std::move(units));
  const std::string out = run({"--format", "jsonl"});
  EXPECT_EQ(std::ranges::count(out, '\n'), 5'003);
  EXPECT_EQ(said_, "5003 units\n");
}

TEST_F(ExportCommand, GoesOnBehindTheLastUnit) {
  const std::string state = (dir_.path() / "state").string();
  add({unit("1", kEnd), unit("2", kEnd)});
  EXPECT_EQ(ids(run({"--format", "csv", "--state", state})), "id 1 2 ");
  EXPECT_EQ(run({"--format", "csv", "--state", state}), "");
  add({unit("3", kEnd), unit("4", kEnd + 1), unit("0", kEnd - 1)});
  // A unit that ended earlier, but became known only after the last export, is not among them.
  EXPECT_EQ(ids(run({"--format", "csv", "--state", state})), "3 4 ");
  std::ofstream(state) << "{}";
  EXPECT_EQ(run({"--format", "csv", "--state", state}, 1), "");
  EXPECT_TRUE(said_.contains("not a file that an earlier export has written")) << said_;
}

TEST_F(ExportCommand, NamesAreReplacedByHashes) {
  add({unit("1", kEnd)});
  const std::string key = (dir_.path() / "key").string();
  std::ofstream(key) << "0123456789abcdef\n";
  const std::string out = run({"--format", "jsonl", "--anonymise", key});
  EXPECT_EQ(out.find("ada"), std::string::npos) << out;
  EXPECT_EQ(out.find("fluids"), std::string::npos) << out;
  EXPECT_NE(out.find("\"id\":\"1\""), std::string::npos) << out;
  std::ofstream(key) << "short\n";
  EXPECT_EQ(run({"--format", "jsonl", "--anonymise", key}, 1), "");
  EXPECT_EQ(said_, "--anonymise: the key has 5 bytes, at least 16 are needed\n");
}

TEST_F(ExportCommand, SaysWhatIsWrong) {
  const auto refused = [&](const std::vector<std::string>& arguments) {
    EXPECT_EQ(run(arguments, 1), "");
    return said_;
  };
  EXPECT_EQ(refused({}),
            "required flag --format not provided; formats are csv, focus, jsonl, xdmod\n");
  EXPECT_EQ(refused({"--format", "xml"}),
            "--format: there is no 'xml'; formats are csv, focus, jsonl, xdmod\n");
  EXPECT_EQ(refused({"--format", "csv", "--from", "yesterday"}),
            "--from: 'yesterday' is neither a day such as 2026-11-01 nor a time as in RFC 3339\n");
  EXPECT_EQ(refused({"--format", "csv", "--from", "2026-01-02", "--until", "2026-01-02"}),
            "--from is not before --until\n");
  EXPECT_EQ(refused({"--format", "csv", "--currency", "EUR"}), "--format csv has no prices\n");
  for (const char* const price : {"", "-1", "x", "inf", "nan"}) {
    EXPECT_EQ(refused({"--format", "focus", "--provider", "HPC", "--currency", "EUR",
                       std::string("--price-per-kwh=") + price}),
              "--format focus needs --provider, --currency (such as EUR) and --price-per-kwh\n")
        << price;
  }
  EXPECT_NE(refused({"--format", "focus", "--provider", "HPC", "--currency", "euro",
                     "--price-per-kwh", "0.2"}),
            "");
  for (const auto& [db, said] :
       {std::pair("postgresql://a:secret@host/d", "--db: "), std::pair("units.db", "--db: "),
        std::pair("/nowhere", "--db: ")}) {
    FakeConsole console;
    EXPECT_EQ(run_tool({"export", "--format", "csv", "--db", db}, console), 1) << db;
    EXPECT_TRUE(console.err.starts_with(said)) << console.err;
    EXPECT_FALSE(console.err.contains("secret")) << console.err;
  }
}

}  // namespace
}  // namespace ceems::tool
