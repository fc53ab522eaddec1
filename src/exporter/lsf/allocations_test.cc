#include "exporter/lsf/allocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/fake_runner.h"

namespace ceems::exporter::lsf {
namespace {

using std::chrono::milliseconds;
using Slots = std::map<std::string, std::size_t>;

/// Answers with what the test said last.
class FakeLsf {
 public:
  Result<AllocationMap> operator()() {
    ++asked;
    const MutexLock lock(mutex_);
    if (!error_.empty()) {
      return fail(ErrorCode::kUnavailable, "{}", error_);
    }
    AllocationMap map;
    for (const auto& [id, slots] : slots_) {
      map[id] = {.slots = slots};
    }
    return map;
  }
  void say(Slots slots, std::string error = "") {
    const MutexLock lock(mutex_);
    slots_ = std::move(slots);
    error_ = std::move(error);
  }
  std::atomic<int> asked = 0;

 private:
  Mutex mutex_;
  Slots slots_ CEEMS_GUARDED_BY(mutex_);
  std::string error_ CEEMS_GUARDED_BY(mutex_);
};

class LsfAllocations : public ::testing::Test {
 protected:
  Allocations& allocations() {
    if (!allocations_) {
      AllocationOptions options;
      options.fetch = [this](const std::stop_token&) { return fake_(); };
      options.times.patience = testing::kPatience;
      options.times.first_wait = testing::kPatience;
      options.times.period = milliseconds(2);
      allocations_ = std::make_unique<Allocations>(std::move(options), clock_);
      allocations_->start();
      allocations_->wait_first(std::chrono::steady_clock::now() + testing::kPatience);
    }
    return *allocations_;
  }
  Slots ask(const std::vector<std::string>& jobs) {
    UnitSnapshot snapshot;
    for (const std::string& job : jobs) {
      snapshot.units.emplace_back().uuid = job;
    }
    Slots slots;
    if (const auto map = allocations().of(snapshot)) {
      for (const auto& [id, allocation] : *map) {
        slots[id] = allocation.slots;
      }
    }
    return slots;
  }
  /// Repeats the request until the answer is this one.
  bool comes(const std::vector<std::string>& jobs, const Slots& expected) {
    return testing::eventually([&] { return ask(jobs) == expected; });
  }

  testing::FakeClock clock_;
  FakeLsf fake_;
  std::unique_ptr<Allocations> allocations_;  // the last member: its thread uses the others
};

TEST_F(LsfAllocations, AreKnownAtTheFirstScrape) {
  fake_.say({{"6[1]", 4}});
  EXPECT_EQ(ask({"6[1]"}), (Slots{{"6[1]", 4}}));
}

TEST_F(LsfAllocations, AreAskedForOnlyWhenJobsChangeOrAfterAQuarterOfAnHour) {
  fake_.say({{"6", 4}});
  EXPECT_TRUE(comes({"6"}, {{"6", 4}}));
  const int asked = fake_.asked;
  for (int i = 0; i < 20; ++i) {
    ask({"6"});
  }
  EXPECT_EQ(fake_.asked, asked);
  fake_.say({{"6", 4}, {"7", 2}});
  EXPECT_TRUE(comes({"6", "7"}, {{"6", 4}, {"7", 2}}));
  EXPECT_EQ(fake_.asked, asked + 1);
  fake_.say({{"6", 8}, {"7", 2}});  // before it is asked for
  clock_.advance(std::chrono::minutes(15));
  EXPECT_TRUE(comes({"6", "7"}, {{"6", 8}, {"7", 2}}));
  EXPECT_EQ(fake_.asked, asked + 2);
}

TEST_F(LsfAllocations, StayThoseOfTheLastAnswerWhileLsfFails) {
  fake_.say({{"6", 4}});
  EXPECT_TRUE(comes({"6"}, {{"6", 4}}));
  fake_.say({}, "LSF is down. Please wait ...");
  EXPECT_EQ(ask({"6", "7"}), (Slots{{"6", 4}}));
  fake_.say({{"6", 4}, {"7", 1}});
  clock_.advance(std::chrono::seconds(10));
  EXPECT_TRUE(comes({"6", "7"}, {{"6", 4}, {"7", 1}}));
}

TEST_F(LsfAllocations, AreKeptForJobsThatLsfNoLongerLists) {
  fake_.say({{"6", 4}, {"7", 2}});
  EXPECT_TRUE(comes({"6", "7"}, {{"6", 4}, {"7", 2}}));
  fake_.say({{"8", 1}});
  EXPECT_TRUE(comes({"6", "8"}, {{"6", 4}, {"8", 1}}));
}

TEST(RunBjobs, AsksForTheJobsOfTheHost) {
  testing::FakeRunner runner;
  runner.reply("bjobs", {.output = R"({"RECORDS":[{"JOBID":"6","ALLOC_SLOT":"n1"}]})"});
  const auto map = run_bjobs(runner, "/opt/lsf/bin/bjobs", "n1", {});
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->at("6").slots, 1U);
  const auto calls = runner.calls();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].path, "/opt/lsf/bin/bjobs");
  EXPECT_EQ(calls[0].arguments,
            (std::vector<std::string>{"-u", "all", "-m", "n1", "-json", "-o",
                                      "jobid jobindex alloc_slot nalloc_slot gpu_alloc"}));
  EXPECT_EQ(calls[0].timeout, std::chrono::seconds(1));
  EXPECT_FALSE(calls[0].as_root);
}

TEST(RunBjobs, TakesNoJobForAnAnswer) {
  testing::FakeRunner runner;
  runner.reply("bjobs", {.exit_status = 255, .error_text = "No unfinished job found\n"});
  const auto map = run_bjobs(runner, "/bjobs", "n1", {});
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_TRUE(map->empty());
}

TEST(RunBjobs, PassesOnWhatWentWrong) {
  testing::FakeRunner runner;
  runner.reply("bjobs", {.exit_status = 255, .error_text = "batch system daemon not responding\n"});
  EXPECT_EQ(run_bjobs(runner, "/bjobs", "n1", {}).error().message,
            "/bjobs: exit status 255: batch system daemon not responding");
  runner.reply("bjobs", {.output = "Segmentation fault"});
  EXPECT_EQ(run_bjobs(runner, "/bjobs", "n1", {}).error().code, ErrorCode::kParse);
  runner.refuse("bjobs", Error{ErrorCode::kTimeout, "no end after 1 s"});
  EXPECT_EQ(run_bjobs(runner, "/bjobs", "n1", {}).error().code, ErrorCode::kTimeout);
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string record(const std::string& id,
                   const std::string& index,
                   const std::string& slots,
                   const std::string& gpus) {
  return R"({"JOBID":")" + id + R"(","JOBINDEX":")" + index + R"(","ALLOC_SLOT":")" + slots +
         R"(","NALLOC_SLOT":"9","GPU_ALLOC":")" + gpus + "\"}";
}

std::string document(const std::string& records) {
  return R"({"COMMAND":"bjobs","JOBS":1,"RECORDS":[)" + records + "]}";
}

Allocation allocation_of(const std::string& slots, const std::string& gpus = "") {
  const auto map = parse_bjobs(document(record("6", "0", slots, gpus)), "n1.example.org");
  EXPECT_TRUE(map) << map.error().message;
  const auto found = map->find("6");
  return found == map->end() ? Allocation{} : found->second;
}

TEST(Bjobs, NamesJobsAndElementsOfArrays) {
  const auto map =
      parse_bjobs(document(record("6", "0", "n1", "") + "," + record("7", "1", "n1", "") + "," +
                           record("7", "12", "n1", "") + "," + record("8", "", "n1", "")),
                  "n1");
  ASSERT_TRUE(map);
  std::vector<std::string> ids;
  for (const auto& [id, allocation] : *map) {
    ids.push_back(id);
  }
  EXPECT_THAT(ids, ElementsAre("6", "7[12]", "7[1]", "8"));
}

TEST(Bjobs, CountsTheSlotsOfThisHostAlone) {
  EXPECT_EQ(allocation_of("n1:n1:n2").slots, 2U);
  EXPECT_EQ(allocation_of("n1.example.org:N1:n2.example.org").slots, 2U);
  EXPECT_EQ(allocation_of("n10:n10:n1").slots, 1U);  // not a part of the name
  EXPECT_EQ(allocation_of("n10:an1").slots, 0U);
  EXPECT_EQ(allocation_of("16*n1:4*n2").slots, 16U);
  EXPECT_EQ(allocation_of("-").slots, 0U);
  EXPECT_EQ(allocation_of("x*n1:n1").slots, 1U);
  EXPECT_EQ(allocation_of("99999999999*n1").slots, std::size_t{1} << 20U);
}

TEST(Bjobs, ListsEachGpuOfThisHostOnce) {
  EXPECT_THAT(allocation_of("n1", "n1:1,0,1,0;n2:3").gpu_minors, ElementsAre(0, 1));
  EXPECT_THAT(allocation_of("n1", "n10:1;n1:2").gpu_minors, ElementsAre(2));
  EXPECT_THAT(allocation_of("n1", "n2:0").gpu_minors, IsEmpty());
  EXPECT_THAT(allocation_of("n1", "n1:x,-1,,3").gpu_minors, ElementsAre(3));
  EXPECT_FALSE(allocation_of("n1", "n1:0").mig);
}

TEST(Bjobs, TellsPartsOfGpusFromWholeOnes) {
  const auto allocation = allocation_of("n1", "n1:0/1/0,2");
  EXPECT_TRUE(allocation.mig);
  EXPECT_THAT(allocation.gpu_minors, ElementsAre(2));
}

TEST(Bjobs, AcceptsNoJobs) {
  EXPECT_THAT(parse_bjobs(document(""), "n1").value(), IsEmpty());
  EXPECT_THAT(
      parse_bjobs(document(R"({"JOBID":"3","ERROR":"Job <3> is not found"})"), "n1").value(),
      IsEmpty());
}

TEST(Bjobs, IgnoresRecordsThatAreNoJobs) {
  const auto map = parse_bjobs(
      document(R"(1,null,{},{"JOBID":"x"},{"JOBID":"6[1]"},)" + record("9", "[", "n1", "") + "," +
               R"({"JOBID":5,"JOBINDEX":2,"ALLOC_SLOT":"n1"})"),
      "n1");
  ASSERT_TRUE(map);
  EXPECT_THAT(*map, SizeIs(2));
  EXPECT_EQ(map->begin()->first, "5[2]");
}

TEST(Bjobs, RefusesOtherDocuments) {
  for (const char* const text : {"", "{}", "[]", "No unfinished job found", R"({"RECORDS":{}})",
                                 R"({"RECORDS":[)", "[[[[[[[[[[[[[[[[[[[[[["}) {
    const auto map = parse_bjobs(text, "n1");
    ASSERT_FALSE(map) << text;
    EXPECT_EQ(map.error().code, ErrorCode::kParse);
  }
}

/// Always the same jobs: 6[1] and 7, each with one CPU in its cpuset.
class TwoJobs final : public UnitSource {
 public:
  [[nodiscard]] std::string_view manager() const override { return "lsf"; }
  [[nodiscard]] std::string_view controller() const override { return "cpuacct"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(
      std::chrono::milliseconds /*max_age*/) override {
    auto result = std::make_shared<UnitSnapshot>();
    for (const char* const id : {"6[1]", "7"}) {
      Unit& unit = result->units.emplace_back();
      unit.uuid = id;
      unit.stats.cpus = 1;
    }
    return result;
  }
  void mark_exported(const UnitSnapshot& snapshot) override { exported += snapshot.units.size(); }
  std::size_t exported = 0;
};

TEST(AllocatedUnits, HaveTheCpusThatLsfAllocated) {
  const testing::FakeClock clock;
  AllocationOptions options;
  options.fetch = [](const std::stop_token&) -> Result<AllocationMap> {
    return AllocationMap{{"6[1]", {.slots = 16}}};
  };
  options.times.patience = testing::kPatience;
  auto allocations = std::make_shared<Allocations>(std::move(options), clock);
  auto jobs = std::make_shared<TwoJobs>();
  AllocatedUnits units(jobs, allocations);
  auto snapshot = units.snapshot(std::chrono::milliseconds(0)).value();
  EXPECT_EQ(snapshot->units[0].stats.cpus, 1);  // not known yet
  allocations->start();
  for (const bool energy : {false, true}) {
    snapshot = (energy ? units.energy_snapshot(std::chrono::milliseconds(0))
                       : units.snapshot(std::chrono::milliseconds(0)))
                   .value();
    ASSERT_EQ(snapshot->units.size(), 2U);
    EXPECT_EQ(snapshot->units[0].stats.cpus, 16);
    EXPECT_EQ(snapshot->units[0].stats.reserved_cpus, 16);
    EXPECT_EQ(snapshot->units[1].stats.cpus, 1);  // LSF does not know it
    EXPECT_EQ(snapshot->units[1].stats.reserved_cpus, 0);
  }
  units.mark_exported(*snapshot);
  EXPECT_EQ(jobs->exported, 2U);
  EXPECT_EQ(units.controller(), "cpuacct");
}

}  // namespace

}  // namespace ceems::exporter::lsf
