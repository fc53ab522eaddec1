#include "exporter/marks/peer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::marks {
namespace {

/// Units whose snapshot a test sets.
class FakeSource final : public UnitSource {
 public:
  explicit FakeSource(std::string controller) : controller_(std::move(controller)) {}
  [[nodiscard]] std::string_view manager() const override { return "slurm"; }
  [[nodiscard]] std::string_view controller() const override { return controller_; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds max_age) override {
    youngest = std::min(youngest, max_age);
    auto snapshot = std::make_shared<UnitSnapshot>();
    snapshot->manager = "slurm";
    snapshot->units = units;
    return snapshot;
  }
  void add(const std::string& uuid, const std::string& path) {
    Unit& unit = units.emplace_back();
    unit.uuid = uuid;
    unit.path = path;
  }
  std::vector<Unit> units;
  std::chrono::milliseconds youngest{1'000'000};

 private:
  std::string controller_;
};

/// A tree of plain files with two jobs of user 1000 and one of user 1001.
class PeerTest : public ::testing::Test {
 protected:
  explicit PeerTest(const std::string& controller = {})
      : source_(std::make_shared<FakeSource>(controller)),
        finder_({dir_.path() / "proc", dir_.path() / "sys", dir_.path() / "cgroup"},
                {source_},
                clock_) {
    for (const auto& [job, pid, uid] :
         {std::tuple{"1", 11, 1000}, {"2", 22, 1000}, {"3", 33, 1001}}) {
      const std::string path = "/slurm/job_" + std::string(job);
      source_->add(job, path);
      process(pid, uid, path + "/step_0/task_0");
      // SLURM's daemons, which are more than the user's processes.
      write_procs(path + "/step_extern", "901\n902\n903\n");
      write_procs(path + "/step_0/task_0", std::to_string(pid) + "\n");
    }
    for (const int pid : {901, 902, 903}) {
      process(pid, 0, "/slurm/job_1/step_extern");
    }
  }
  void write_procs(const std::string& path, const std::string& pids) {
    dir_.write("cgroup" + path + "/cgroup.procs", pids);
  }
  void process(int pid, int uid, const std::string& path, int start = 4711) {
    const std::string proc = "proc/" + std::to_string(pid);
    std::string stat = std::to_string(pid) + " (a) b) S";
    for (int field = 4; field < 22; ++field) {
      stat += " 0";
    }
    dir_.write(proc + "/stat", stat + " " + std::to_string(start) + " 0 0\n");
    dir_.write(proc + "/status", "Name:\tapp\nUid:\t" + std::to_string(uid) + "\t0\t0\t0\n");
    dir_.write(proc + "/cgroup", "4:memory:/x\n3:cpu,cpuacct:" + path + "\n0::" + path + "\n");
  }
  std::string find(int pid, unsigned uid) {
    Credentials peer;
    peer.pid = pid;
    peer.uid = uid;
    const auto found = finder_.find(peer);
    const auto* refusal = std::get_if<Refusal>(&found);
    return refusal != nullptr ? std::string(to_string(*refusal))
                              : "job " + std::get<PeerFinder::Found>(found).unit->uuid;
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  std::shared_ptr<FakeSource> source_;
  PeerFinder finder_;
};

TEST_F(PeerTest, FindsTheUnitOfAProcess) {
  EXPECT_EQ(find(11, 1000), "job 1");
  EXPECT_EQ(find(22, 1000), "job 2");
  EXPECT_EQ(find(33, 1001), "job 3");
}

TEST_F(PeerTest, IsNotMisledByNamesThatBeginAlike) {
  source_->add("11", "/slurm/job_11");
  process(44, 1000, "/slurm/job_11/step_0");
  write_procs("/slurm/job_11/step_0", "44\n");
  EXPECT_EQ(find(44, 1000), "job 11");
  process(55, 1000, "/slurm/job_111");
  EXPECT_EQ(find(55, 1000), "no_unit");
}

TEST_F(PeerTest, RefusesOtherUsers) {
  process(34, 1000, "/slurm/job_3/step_0/task_0");  // got into the job of user 1001 somehow
  write_procs("/slurm/job_3/step_0/task_0", "33\n34\n");
  EXPECT_EQ(find(34, 1000), "other_user");
  EXPECT_EQ(find(33, 1001), "job 3");
  process(35, 0, "/slurm/job_3/step_extern");
  EXPECT_EQ(find(35, 0), "job 3");  // root
}

TEST_F(PeerTest, LooksAgainWhenTheOwnerMayHaveChanged) {
  EXPECT_EQ(find(11, 1000), "job 1");
  process(11, 1002, "/slurm/job_1/step_0/task_0");
  EXPECT_EQ(find(11, 1002), "other_user");
  clock_.advance(std::chrono::seconds(2));
  EXPECT_EQ(find(11, 1002), "job 1");
}

TEST_F(PeerTest, RefusesAPidThatMayBelongToAnotherProcessNow) {
  process(11, 1001, "/slurm/job_3/step_0/task_0");
  EXPECT_EQ(find(11, 1000), "gone");
}

TEST_F(PeerTest, RefusesProcessesThatCannotBeSeen) {
  EXPECT_EQ(find(0, 1000), "gone");
  EXPECT_EQ(find(99, 1000), "gone");
  dir_.write("proc/11/stat", "nonsense");
  EXPECT_EQ(find(11, 1000), "gone");
}

TEST_F(PeerTest, RefusesProcessesOutsideOfUnits) {
  process(66, 1000, "/user.slice/session-1.scope");
  EXPECT_EQ(find(66, 1000), "no_unit");
  EXPECT_EQ(source_->youngest, PeerFinder::kNewSnapshotAge);
  source_->units[0].ended = true;
  EXPECT_EQ(find(11, 1000), "no_unit");
  dir_.write("proc/22/cgroup", "");
  EXPECT_EQ(find(22, 1000), "no_unit");
}

TEST_F(PeerTest, RefusesAProcessThatHasEnded) {
  Credentials peer;
  peer.pid = 11;
  peer.uid = 1000;
  peer.ended = true;
  EXPECT_EQ(std::get<Refusal>(finder_.find(peer)), Refusal::kGone);
}

class PeerV1Test : public PeerTest {
 protected:
  PeerV1Test() : PeerTest("cpuacct") {
    dir_.write("cgroup/cpu,cpuacct/slurm/job_1/cgroup.procs", "901\n11\n");
    std::filesystem::create_symlink("cpu,cpuacct", dir_.path() / "cgroup/cpuacct");
  }
};

TEST_F(PeerV1Test, ReadsTheHierarchyOfTheUnits) {
  dir_.write("proc/11/cgroup", "4:memory:/slurm/job_2\n3:cpu,cpuacct:/slurm/job_1\n0::/\n");
  EXPECT_EQ(find(11, 1000), "job 1");
  EXPECT_EQ(find(11, 1001), "gone");
}

TEST(PeerCredentials, AreThoseOfTheOtherEnd) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair.data()), 0);
  const UniqueFd first(pair[0]);
  const UniqueFd second(pair[1]);
  const Credentials peer = credentials_of(first.get());
  EXPECT_EQ(peer.pid, ::getpid());
  EXPECT_EQ(peer.uid, ::geteuid());
  EXPECT_FALSE(peer.ended);
}

TEST(PeerCredentials, OfWhatIsNoSocketAreThoseOfNobody) {
  EXPECT_TRUE(credentials_of(-1).ended);
}

}  // namespace
}  // namespace ceems::exporter::marks
