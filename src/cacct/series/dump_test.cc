#include "cacct/series/dump.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cacct/series/dump_progress.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"
#include "tsdb/fake_transport.h"

namespace ceems::cacct {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using tsdb::FakeTransport;

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// All files of a directory and their content.
std::map<std::string, std::string> files_of(const std::filesystem::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    files[entry.path().filename()] = read(entry.path());
  }
  return files;
}

SeriesQuery query(const std::string& name, std::string_view text) {
  SeriesQuery made;
  made.name = name;
  EXPECT_TRUE(made.set_text(text));
  return made;
}

/// A TSDB whose series `cpu` and `mem` have a sample at each step: its time in seconds.
class FakeTsdb {
 public:
  FakeTsdb() {
    auto transport = std::make_unique<FakeTransport>(
        [this](const FakeTransport::Request& request) { return serve(request); });
    transport_ = transport.get();
    client = std::make_unique<tsdb::Client>("http://tsdb", std::move(transport), clock);
  }

  [[nodiscard]] std::vector<FakeTransport::Request> requests() const {
    return transport_->requests();
  }

  testing::FakeClock clock;
  std::unique_ptr<tsdb::Client> client;
  int hang_at = -1;      ///< throws at the request with this number
  std::string labels;    ///< of each series, besides uuid
  int seconds_each = 2;  ///< that pass with each request
  double align = 0;      ///< moves the ends of a range outwards to a multiple of it, in seconds

 private:
  Result<net::ClientResponse> serve(const FakeTransport::Request& request) {
    clock.advance(std::chrono::seconds(seconds_each));
    if (--hang_at == 0) {
      throw std::runtime_error("killed");
    }
    const std::string expression = request.first("query");
    if (expression.find("broken") != std::string::npos) {
      return FakeTransport::status(
          422, R"({"status":"error","errorType":"execution","error":"no such function"})");
    }
    double start = *parse_double(request.first("start"));
    double end = *parse_double(request.first("end"));
    const double step = *parse_double(request.first("step"));
    if (align > 0) {
      start = std::floor(start / align) * align;
      end = std::ceil(end / align) * align;
    }
    std::string values;
    for (int i = 0; start + i * step <= end; ++i) {
      const double time = start + i * step;
      values += fmt::format("{}[{},\"{}\"]", values.empty() ? "" : ",", time, time);
    }
    return FakeTransport::ok(fmt::format(
        R"({{"status":"success","data":{{"resultType":"matrix","result":[)"
        R"({{"metric":{{{}"uuid":"7"}},"values":[{}]}},{{"metric":{{"job":"x"}},"values":[[1,"1"]]}}]}}}})",
        labels, values));
  }

  FakeTransport* transport_;
};

class DumpTest : public ::testing::Test {
 protected:
  DumpTest() {
    options_.directory = dir_.path() / "out" / "ts";
    queries_ = {query("cpu", "cpu{uuid=\"%s\"}"), query("mem", "mem{uuid=\"%s\"}")};
  }

  Result<DumpOutcome> dump(FakeTsdb& tsdb) {
    std::vector<const SeriesQuery*> pointers;
    for (const SeriesQuery& one : queries_) {
      pointers.push_back(&one);
    }
    return dump_series(*tsdb.client, units_, pointers, options_, tsdb.clock);
  }

  testing::TempDir dir_;
  DumpOptions options_;
  std::vector<SeriesQuery> queries_;
  std::vector<DumpUnit> units_{{.uuid = "7", .start_ms = 1'000'000, .end_ms = 1'040'500}};
};

TEST(Fingerprint, IsThatOfPrometheus) {
  EXPECT_EQ(fingerprint({{"instance", "localhost:9090"}, {"uuid", "147973"}}), "554b56cadf9dea4b");
  EXPECT_EQ(fingerprint({}), "cbf29ce484222325");
}

TEST_F(DumpTest, AsksForARangeOfASecondAtLeast) {
  FakeTsdb tsdb;
  queries_ = {query("cpu", "max_over_time(cpu{uuid=~\"{{.UUIDs}}\"}[{{.Range}}])")};
  units_ = {{.uuid = "7", .start_ms = 1'000'000, .end_ms = 1'000'400}};
  ASSERT_TRUE(dump(tsdb));
  EXPECT_EQ(tsdb.requests().at(0).first("query"), "max_over_time(cpu{uuid=~\"7\"}[1s])");
}

TEST_F(DumpTest, WritesAFileForEachSeries) {
  FakeTsdb tsdb;
  queries_.pop_back();
  const auto outcome = dump(tsdb);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->series, 1U);
  EXPECT_EQ(outcome->samples, 5U);
  EXPECT_FALSE(outcome->resumed);
  ASSERT_THAT(tsdb.requests(), SizeIs(1));
  EXPECT_EQ(tsdb.requests()[0].first("query"), "cpu{uuid=\"7\"}");
  EXPECT_EQ(tsdb.requests()[0].first("start"), "1000");
  EXPECT_EQ(tsdb.requests()[0].first("end"), "1040.5");
  EXPECT_EQ(tsdb.requests()[0].first("step"), "10");
  EXPECT_EQ(tsdb.requests()[0].first("lookback_delta"), "60s");
  const std::string name = fingerprint({{"uuid", "7"}});
  const auto files = files_of(options_.directory);
  ASSERT_THAT(files, SizeIs(2));
  EXPECT_EQ(files.at(name + ".csv"),
            "timestamp,value\n1000,1000\n1010,1010\n1020,1020\n1030,1030\n1040,1040\n");
  EXPECT_EQ(files.at("metadata.json"),
            "[\n\t{\n\t\t\"fingerprint\": \"" + name +
                "\",\n\t\t\"labels\": {\n\t\t\t\"uuid\": \"7\"\n\t\t}\n\t}\n]\n");
  EXPECT_EQ(std::filesystem::status(options_.directory).permissions(),
            std::filesystem::perms::owner_all);
}

TEST_F(DumpTest, WritesJsonLines) {
  FakeTsdb tsdb;
  queries_.pop_back();
  options_.format = SeriesFormat::kJsonLines;
  units_[0].end_ms = 1'010'000;
  ASSERT_TRUE(dump(tsdb));
  EXPECT_EQ(
      read(std::filesystem::path(options_.directory) / (fingerprint({{"uuid", "7"}}) + ".jsonl")),
      "{\"timestamp\":1000,\"value\":1000}\n{\"timestamp\":1010,\"value\":1010}\n");
}

TEST_F(DumpTest, KeepsSeriesOfTwoQueriesWithTheSameLabelsApart) {
  FakeTsdb tsdb;
  const auto outcome = dump(tsdb);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->series, 2U);
  const auto files = files_of(options_.directory);
  const std::string second = fingerprint({{"__query__", "mem"}, {"uuid", "7"}});
  EXPECT_EQ(files.at(second + ".csv"), files.at(fingerprint({{"uuid", "7"}}) + ".csv"));
  EXPECT_THAT(files.at("metadata.json"), HasSubstr("\"__query__\": \"mem\""));
}

TEST_F(DumpTest, DescribesSeriesWhereTheQueriesAreAList) {
  FakeTsdb tsdb;
  queries_.pop_back();
  queries_[0].title = "CPU use";
  queries_[0].help = "Share of the CPUs";
  options_.describe = true;
  ASSERT_TRUE(dump(tsdb));
  EXPECT_EQ(files_of(options_.directory).at("metadata.json"),
            "[\n\t{\n\t\t\"fingerprint\": \"" + fingerprint({{"uuid", "7"}}) +
                "\",\n\t\t\"labels\": {\n\t\t\t\"help\": \"Share of the CPUs\",\n\t\t\t\"metric\": "
                "\"CPU use\",\n\t\t\t\"uuid\": \"7\"\n\t\t}\n\t}\n]\n");
}

TEST_F(DumpTest, AsksInPiecesThatLeaveNothingOut) {
  FakeTsdb tsdb;
  queries_.pop_back();
  units_[0].end_ms = units_[0].start_ms + 25'000 * 10'000LL;
  const auto outcome = dump(tsdb);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->samples, 25'001U);
  // 1000 points first, to see how many series there are, then no more than Prometheus allows.
  ASSERT_THAT(tsdb.requests(), SizeIs(4));
  EXPECT_EQ(tsdb.requests()[0].first("end"), "10990");
  EXPECT_EQ(tsdb.requests()[1].first("start"), "11000");
  EXPECT_EQ(tsdb.requests()[1].first("end"), "110990");
  std::string expected = "timestamp,value\n";
  for (int i = 0; i <= 25'000; ++i) {
    expected += fmt::format("{0},{0}\n", 1000 + i * 10);
  }
  EXPECT_EQ(
      read(std::filesystem::path(options_.directory) / (fingerprint({{"uuid", "7"}}) + ".csv")),
      expected);
}

/// VictoriaMetrics answers so.
TEST_F(DumpTest, WritesEachSampleOnceWhereTheServerWidensRanges) {
  queries_.pop_back();
  units_[0] = {.uuid = "7", .start_ms = 1'003'000, .end_ms = 1'003'000 + 12'000 * 10'000LL};
  std::string expected = "timestamp,value\n";
  for (int i = 0; i <= 12'001; ++i) {
    expected += fmt::format("{0},{0}\n", 1000 + i * 10);
  }
  const auto file =
      std::filesystem::path(options_.directory) / (fingerprint({{"uuid", "7"}}) + ".csv");
  FakeTsdb tsdb;
  tsdb.align = 10;
  const auto outcome = dump(tsdb);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->samples, 12'002U);
  EXPECT_EQ(read(file), expected);
  std::filesystem::remove_all(options_.directory);
  FakeTsdb killed;
  killed.align = 10;
  killed.hang_at = 2;
  EXPECT_THROW((void)dump(killed), std::runtime_error);
  EXPECT_TRUE(dump(tsdb)->resumed);
  EXPECT_EQ(read(file), expected);
}

TEST_F(DumpTest, ContinuesWhereItWasInterrupted) {
  units_[0].end_ms = units_[0].start_ms + 12'000 * 10'000LL;
  FakeTsdb whole;
  ASSERT_TRUE(dump(whole));
  const auto expected = files_of(options_.directory);
  const std::size_t all = whole.requests().size();
  for (int at = 1; at <= static_cast<int>(all); ++at) {
    std::filesystem::remove_all(options_.directory);
    FakeTsdb first;
    first.hang_at = at;
    EXPECT_THROW((void)dump(first), std::runtime_error);
    // What was written after the progress was saved must not be there twice.
    for (const auto& entry : std::filesystem::directory_iterator(options_.directory)) {
      if (entry.path().extension() == ".csv") {
        std::ofstream(entry.path(), std::ios::app) << "half a li";
      }
    }
    FakeTsdb second;
    const auto outcome = dump(second);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->resumed, at > 1) << at;
    EXPECT_EQ(outcome->samples, 2U * 12'001U);
    // It begins with a small piece again, so it may take one request more.
    EXPECT_LE(second.requests().size(), all - static_cast<std::size_t>(at - 1) + 1);
    EXPECT_EQ(files_of(options_.directory), expected) << at;
  }
}

TEST_F(DumpTest, ContinuesOnlyTheSameDump) {
  units_[0].end_ms = units_[0].start_ms + 25'000 * 10'000LL;
  FakeTsdb first;
  first.hang_at = 3;
  EXPECT_THROW((void)dump(first), std::runtime_error);
  units_[0].end_ms += 1;
  FakeTsdb second;
  const auto other = dump(second);
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->resumed);
}

TEST_F(DumpTest, IgnoresProgressThatMakesNoSense) {
  FakeTsdb tsdb;
  std::filesystem::create_directories(options_.directory);
  for (const char* text : {"", "{", "[]", "{\"version\":\"2\"}", "null"}) {
    std::ofstream(std::filesystem::path(options_.directory) / "progress.json") << text;
    const auto outcome = dump(tsdb);
    ASSERT_TRUE(outcome);
    EXPECT_FALSE(outcome->resumed);
  }
}

TEST_F(DumpTest, ReportsQueriesThatFailAndGoesOn) {
  FakeTsdb tsdb;
  queries_[0] = query("bad", "broken(x{uuid=\"%s\"})");
  const auto outcome = dump(tsdb);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->series, 1U);
  ASSERT_THAT(outcome->failed, SizeIs(1));
  EXPECT_THAT(
      outcome->failed[0],
      HasSubstr(
          "failed to fetch time series for query bad of 7: TSDB: execution: no such function"));
}

TEST_F(DumpTest, FailsIfItCannotWrite) {
  FakeTsdb tsdb;
  options_.directory = dir_.write("file", "x") / "below";
  const auto outcome = dump(tsdb);
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message, HasSubstr("create the directory"));
}

TEST_F(DumpTest, FollowsNoLinks) {
  FakeTsdb tsdb;
  queries_.pop_back();
  std::filesystem::create_directories(options_.directory);
  const auto target = dir_.write("precious", "precious");
  std::filesystem::create_symlink(
      target, std::filesystem::path(options_.directory) / (fingerprint({{"uuid", "7"}}) + ".csv"));
  EXPECT_FALSE(dump(tsdb));
  EXPECT_EQ(read(target), "precious");
}

TEST(DumpProgress, ReadsWhatItWrote) {
  DumpProgress progress;
  progress.key = "k\"";
  progress.item = 3;
  progress.next_ms = 12;
  progress.samples = 99;
  progress.series["ab"] = {
      .labels = {{"uuid", "7"}, {"job", "\x01"}}, .item = 2, .bytes = 1234, .last_ms = -5};
  progress.failed = {"one", "two"};
  const auto read = parse_progress(to_json(progress));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->key, "k\"");
  EXPECT_EQ(read->item, 3U);
  EXPECT_EQ(read->next_ms, 12);
  EXPECT_EQ(read->samples, 99U);
  EXPECT_THAT(read->failed, ElementsAre("one", "two"));
  ASSERT_THAT(read->series, SizeIs(1));
  EXPECT_EQ(read->series.at("ab").labels.at("job"), "\x01");
  EXPECT_EQ(read->series.at("ab").item, 2U);
  EXPECT_EQ(read->series.at("ab").bytes, 1234U);
  EXPECT_EQ(read->series.at("ab").last_ms, -5);
  std::string text = to_json(progress);
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(parse_progress(std::string_view(text).substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace ceems::cacct
