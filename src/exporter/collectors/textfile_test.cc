#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Textfile : public ::testing::Test {
 protected:
  Textfile() : host_(dir_.path()) {
    directory_ = dir_.path() / "prom";
    std::filesystem::create_directory(directory_);
  }

  void make(const std::vector<std::string>& more = {}) {
    std::vector<std::string> flags{"--collector.textfile.directory=" + directory_.string()};
    for (const std::string& directory : more) {
      flags.push_back("--collector.textfile.directory=" + directory);
    }
    auto created = create_collector(textfile_collector(), host_.context, flags);
    ASSERT_TRUE(created) << created.error().message;
    collector_ = std::move(*created);
  }
  /// The page without the times of files.
  std::string page() {
    std::string page = samples_of(*collector_, &result_);
    for (auto at = page.find("ceems_textfile_mtime"); at != std::string::npos;
         at = page.find("ceems_textfile_mtime")) {
      page.erase(at, page.find('\n', at) + 1 - at);
    }
    return page;
  }
  [[nodiscard]] std::string error() const { return result_ ? "none" : result_.error().message; }
  void write(const std::string& name, std::string_view text) const {
    dir_.write("prom/" + name, text);
  }

  testing::TempDir dir_;
  TestContext host_;
  std::filesystem::path directory_;
  std::unique_ptr<Collector> collector_;
  Result<> result_;
};

TEST_F(Textfile, ExportsAllFilesWithTheirTimes) {
  write("pdu.prom",
        "# HELP pdu_watts Power.\n# TYPE pdu_watts gauge\npdu_watts{outlet=\"3\"} 412.5\n");
  write("raid.prom", "raid_errors_total 2\n");
  write("notes.txt", "not for us\n");
  write("half.prom.12", "pdu_watts 1\n");
  make();
  const timespec when{.tv_sec = 1'700'000'000, .tv_nsec = 500'000'000};
  const std::array times{when, when};
  ASSERT_EQ(::utimensat(AT_FDCWD, (directory_ / "pdu.prom").c_str(), times.data(), 0), 0);
  EXPECT_EQ(page(),
            "ceems_textfile_scrape_error{hostname=\"n1\"} 0\npdu_watts{outlet=\"3\"} 412.5\n"
            "raid_errors_total 2\n");
  EXPECT_EQ(error(), "none");
  EXPECT_THAT(samples_of(*collector_), HasSubstr("ceems_textfile_mtime_seconds{file=\"" +
                                                 (directory_ / "pdu.prom").string() +
                                                 "\",hostname=\"n1\"} 1.7000000005e+09\n"));
}

TEST_F(Textfile, ReadsChangedFilesAgain) {
  write("a.prom", "a 1\n");
  make();
  EXPECT_THAT(page(), StartsWith("a 1\n"));
  write("new", "a 22\n");
  std::filesystem::rename(directory_ / "new", directory_ / "a.prom");
  EXPECT_THAT(page(), StartsWith("a 22\n"));
  std::filesystem::remove(directory_ / "a.prom");
  EXPECT_EQ(page(), "ceems_textfile_scrape_error{hostname=\"n1\"} 0\n");
}

TEST_F(Textfile, LosesOnlyTheFileThatIsBroken) {
  write("bad.prom", "a 1\nb one\n");
  write("good.prom", "c 3\n");
  write("own.prom", "ceems_compute_unit_energy_joules_total{uuid=\"1\"} 0\n");
  write("rule.prom", "dev:amd_gpu_power_watts:pue 0\n");
  std::filesystem::create_symlink("/etc/passwd", directory_ / "link.prom");
  ::mkfifo((directory_ / "pipe.prom").c_str(), 0666);
  std::filesystem::create_directory(directory_ / "folder.prom");
  make();
  EXPECT_EQ(page(), "c 3\nceems_textfile_scrape_error{hostname=\"n1\"} 1\n");
  EXPECT_THAT(error(), HasSubstr("bad.prom: line 2: b: expected a number, got 'one'"));
  EXPECT_THAT(error(), HasSubstr("own.prom: ceems_compute_unit_energy_joules_total: the name is "
                                 "reserved for CEEMS"));
  EXPECT_THAT(error(), HasSubstr("rule.prom: dev:amd_gpu_power_watts:pue: the name is reserved"));
  for (const char* name : {"link.prom", "pipe.prom", "folder.prom"}) {
    EXPECT_THAT(error(), HasSubstr(name));
  }
  EXPECT_THAT(error(), Not(HasSubstr("root")));
}

TEST_F(Textfile, LetsNoFileWriteWhatOurQueriesRead) {
  for (const std::string name :
       {"uuid:ceems_cpu_usage:ratio_irate", "ceems:country",
        "provider:ceems_site_emission_factor:max", "process_start_time_seconds",
        "promhttp_metric_handler_requests_total"}) {
    write("a.prom", "b 2\n" + name + "{uuid=\"1\"} 0\n");
    make();
    EXPECT_EQ(page(), "ceems_textfile_scrape_error{hostname=\"n1\"} 1\n") << name;
    EXPECT_THAT(error(), HasSubstr(name + ": the name is reserved for CEEMS"));
  }
  write("a.prom", "pdu:watts:mean 3\nprocesses 4\n");
  make();
  EXPECT_THAT(page(), HasSubstr("pdu:watts:mean 3\nprocesses 4\n"));
  EXPECT_EQ(error(), "none");
}

TEST_F(Textfile, ReportsFilesThatContradictEachOther) {
  write("a.prom", "# TYPE x gauge\nx{i=\"1\"} 1\n");
  for (const char* text : {"# TYPE x counter\nx{i=\"2\"} 2\n", "x{i=\"1\"} 2\n",
                           "# HELP x Other.\n# TYPE x gauge\nx{i=\"2\"} 2\n"}) {
    write("b.prom", std::string(text) + "y 3\n");
    make();
    EXPECT_EQ(page(), "ceems_textfile_scrape_error{hostname=\"n1\"} 1\nx{i=\"1\"} 1\ny 3\n")
        << text;
    EXPECT_THAT(error(), HasSubstr("b.prom: left out 1 samples"));
  }
}

TEST_F(Textfile, RefusesDirectoriesThatJobsCanWriteTo) {
  write("a.prom", "a 1\n");
  std::filesystem::permissions(directory_, std::filesystem::perms::all);
  make({(dir_.path() / "missing").string()});
  EXPECT_EQ(page(), "ceems_textfile_scrape_error{hostname=\"n1\"} 1\n");
  EXPECT_THAT(error(), HasSubstr("prom: every user can write into it; "));
  EXPECT_THAT(error(), HasSubstr("missing: No such file or directory"));
}

TEST_F(Textfile, IsBounded) {
  std::string text;
  for (int i = 0; i < 15'000; ++i) {
    text += fmt::format("a{{i=\"{}\"}} 1\n", i);
  }
  write("a.prom", text);
  write("b.prom", text + "b 1\n");
  for (int i = 0; i < 10; ++i) {
    text += "# " + std::string(1U << 19U, 'x') + "\n";
  }
  write("c.prom", text);
  make();
  EXPECT_THAT(page(), HasSubstr("scrape_error{hostname=\"n1\"} 1\n"));
  EXPECT_THAT(error(), HasSubstr("b.prom: more than 20000 samples in all files"));
  EXPECT_THAT(error(), HasSubstr("c.prom"));
}

TEST_F(Textfile, NeedsADirectory) {
  const auto created = create_collector(textfile_collector(), host_.context);
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message, HasSubstr("needs --collector.textfile.directory"));
}

}  // namespace
}  // namespace ceems::exporter
