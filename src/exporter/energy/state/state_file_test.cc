#include "exporter/energy/state/state_file.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "os/file.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::energy {
namespace {

class StateFileTest : public ::testing::Test {
 protected:
  static Learned learned(double watts) {
    Learned some;
    some.add({.domain = Domain::kPackage,
              .meters = "rapl-package-0",
              .bins = {{.use = 0, .watts = watts, .windows = 6}}});
    return some;
  }

  StateFile make() { return {path_, machine_, clock_}; }
  /// The idle watts in the file; 0 if there are none.
  double stored() {
    const auto text = os::read_regular_file(path_, StateFile::kMaxBytes);
    const auto read = text ? from_json(*text, machine_) : fail(text.error());
    return read && !read->idle.empty() ? read->idle.front().bins.front().watts : 0;
  }
  /// What load() logs, without times and sources.
  std::string log_of_load(StateFile& file) {
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(file.load().idle.empty());
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
    return log.substr(std::min(log.size(), log.find("msg=")));
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  MachineIdentity machine_{.id = "id", .cpu = "cpu", .sockets = 1, .cpus = 8};
  std::string path_ = dir_.path() / "energy.json";
};

TEST_F(StateFileTest, IsReadByTheNextRun) {
  {
    StateFile file = make();
    EXPECT_TRUE(file.load().idle.empty());
    file.save_last(learned(80));
  }
  StateFile file = make();
  const Learned read = file.load();
  ASSERT_EQ(read.idle.size(), 1U);
  EXPECT_EQ(read.idle.front().bins, learned(80).idle.front().bins);
}

TEST_F(StateFileTest, IsWrittenWhenDueAndChanged) {
  StateFile file = make();
  file.load();
  EXPECT_FALSE(file.due());
  clock_.advance(StateFile::kPause);
  EXPECT_TRUE(file.due());
  file.save({});  // nothing was learned yet
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(file.due());
  file.save(learned(80));
  file.save_last(learned(80));  // waits
  EXPECT_EQ(stored(), 80);
  std::filesystem::remove(path_);
  file.save_last(learned(80));  // the same
  EXPECT_FALSE(std::filesystem::exists(path_));
  file.save_last(learned(81));
  EXPECT_EQ(stored(), 81);
}

TEST_F(StateFileTest, KeepsWhatIsAbsentThisTime) {
  Learned before = learned(80);
  before.add(
      {.domain = Domain::kGpu, .device = "GPU-1", .bins = {{.use = 0, .watts = 70, .windows = 6}}});
  dir_.write("energy.json", to_json(before, machine_));
  StateFile file = make();
  file.load();
  file.save_last(learned(90));
  const auto after = from_json(os::read_regular_file(path_, 10'000).value(), machine_);
  ASSERT_EQ(after.value().idle.size(), 2U);
  EXPECT_EQ(after->idle.at(0).bins.at(0).watts, 90);
  EXPECT_EQ(after->idle.at(1).bins.at(0).watts, 70);
}

TEST_F(StateFileTest, IsRefusedWithOneLine) {
  StateFile file = make();
  EXPECT_EQ(log_of_load(file), "msg=\"energy: nothing was learned before\" file=" + path_ + "\n");
  const std::string refused = "msg=\"energy: state file not used\" ";
  dir_.write("energy.json", "{}");
  EXPECT_EQ(log_of_load(file), refused + "file=" + path_ + " err=\"expected a version\"\n");
  dir_.write("energy.json",
             to_json(learned(80), {.id = "other", .cpu = "cpu", .sockets = 1, .cpus = 8}));
  EXPECT_EQ(log_of_load(file), refused + "file=" + path_ + " err=\"of another machine\"\n");
  dir_.write("energy.json", std::string(StateFile::kMaxBytes + 1, ' '));
  EXPECT_EQ(log_of_load(file), refused + "err=\"" + path_ + ": larger than 1048576 bytes\"\n");
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(log_of_load(file), refused + "err=\"" + path_ + ": expected a regular file\"\n");
}

TEST_F(StateFileTest, OfAnotherNodeIsReplaced) {
  // A home directory that nodes share, or an image that was copied with its state.
  dir_.write("energy.json",
             to_json(learned(500), {.id = "other", .cpu = "cpu", .sockets = 1, .cpus = 8}));
  StateFile file = make();
  EXPECT_TRUE(file.load().idle.empty());
  Learned now;
  now.add({.domain = Domain::kDram,
           .meters = "rapl-dram-0",
           .bins = {{.use = 0, .watts = 12, .windows = 6}}});
  file.save_last(now);
  const auto after = from_json(os::read_regular_file(path_, 10'000).value(), machine_);
  ASSERT_TRUE(after);
  ASSERT_EQ(after->idle.size(), 1U) << "nothing of the other node is kept";
  EXPECT_EQ(after->idle[0].domain, Domain::kDram);
  EXPECT_EQ(after->idle[0].bins, now.idle[0].bins);
}

TEST_F(StateFileTest, LosesKeysThatItDoesNotKnow) {
  std::string text = to_json(learned(80), machine_);
  text.insert(1, R"("later":[1,2],)");
  dir_.write("energy.json", text);
  StateFile file = make();
  ASSERT_EQ(file.load().idle.size(), 1U);
  file.save_last(learned(90));
  EXPECT_EQ(os::read_regular_file(path_, 10'000).value(), to_json(learned(90), machine_));
}

TEST_F(StateFileTest, ThatCannotBeWrittenIsOneWarning) {
  path_ = dir_.path() / "none/energy.json";
  StateFile file = make();
  ::testing::internal::CaptureStderr();
  file.load();
  file.save(learned(80));
  file.save_last(learned(81));
  std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 2) << log;  // and that nothing was learned before
  EXPECT_NE(log.find("level=WARN"), std::string::npos) << log;
  EXPECT_NE(log.find("energy: state file cannot be written"), std::string::npos) << log;
  EXPECT_NE(log.find("No such file or directory"), std::string::npos) << log;
  // Once it can be written, the next failure is logged again.
  std::filesystem::create_directory(dir_.path() / "none");
  file.save_last(learned(82));
  EXPECT_EQ(stored(), 82);
  std::filesystem::remove_all(dir_.path() / "none");
  ::testing::internal::CaptureStderr();
  file.save_last(learned(83));
  log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
}

TEST_F(StateFileTest, IsCompleteWheneverItIsThere) {
  StateFile file = make();
  file.load();
  for (int i = 1; i <= 200; ++i) {
    file.save(learned(i));
    if (std::filesystem::exists(path_)) {
      EXPECT_GT(stored(), 0) << i;
    }
  }
  file.save_last(learned(201));
  EXPECT_EQ(stored(), 201);
}

}  // namespace
}  // namespace ceems::exporter::energy
