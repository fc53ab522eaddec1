#include "store/facts/rows.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "store/facts/advice.h"
#include "store/schema/fact_columns.h"

namespace ceems::store {
namespace {

/// The value of a column of the row that put_facts() stores.
class Facts : public ::testing::Test {
 protected:
  std::int64_t number(std::size_t column) {
    return std::get<std::int64_t>(put_facts(source()).values.at(column));
  }
  std::string text(std::size_t column) {
    return std::get<std::string>(put_facts(source()).values.at(column));
  }
  FactSource source() {
    FactSource source;
    source.cluster_id = "hpc";
    source.unit = &unit_;
    source.window = &unit_;
    source.window_gpu_seconds = gpu_seconds_;
    for (std::size_t i = 0; i < maps_.size(); ++i) {
      source.maps[i] = maps_[i];
    }
    return source;
  }
  static constexpr std::size_t kName = fact_place("name"), kState = fact_place("state"),
                               kQueue = fact_place("queue"), kArray = fact_place("array_id"),
                               kCpus = fact_place("cpus"), kMemory = fact_place("memory"),
                               kGpus = fact_place("gpus"), kNodes = fact_place("nodes"),
                               kLimit = fact_place("time_limit"), kWall = fact_place("wall"),
                               kCpuUse = fact_place("cpu_use"), kGpuUse = fact_place("gpu_use"),
                               kEnergy = fact_place("energy"),
                               kCpuEnergy = fact_place("cpu_energy"),
                               kGpuEnergy = fact_place("gpu_energy"), kGrams = fact_place("grams"),
                               kPeak = fact_place("peak_memory"),
                               kIdleMs = fact_place("gpu_idle_ms"),
                               kSeenMs = fact_place("gpu_seen_ms"),
                               kIdle = fact_place("idle_energy"),
                               kNotUsed = fact_place("not_used_energy");

  model::Unit unit_;
  double gpu_seconds_ = 0;
  std::array<std::string, model::kMetricCount + 1> maps_;
};

TEST_F(Facts, ComeFromTheMapsOfTheUnit) {
  maps_[0] = R"({"alloc_cputime":7200.4,"alloc_gputime":3600,"walltime":1800})";
  maps_[1] = R"({"global":22.416})";
  maps_[3] = R"({"total":4.25})";
  maps_[4] = R"({"owid_total":50,"rte_total":40.5})";
  maps_[5] = R"({"global":0})";
  maps_[7] = R"({"total":37})";
  maps_[8] = R"({"owid_total":100,"rte_total":80})";
  EXPECT_EQ(number(kWall), 1800);
  EXPECT_EQ(number(kCpuUse), 2242);
  EXPECT_EQ(number(kGpuUse), 0);
  EXPECT_EQ(number(kCpuEnergy), 4'250'000'000);
  EXPECT_EQ(number(kGpuEnergy), 37'000'000'000);
  EXPECT_EQ(number(kEnergy), 41'250'000'000);
  EXPECT_EQ(number(kGrams), 120'500'000);
}

TEST_F(Facts, SayWhichJobsUsedTooMuchMemory) {
  unit_.ended_at_ts = 1;
  const auto state = [this](const char* manager, const char* word, const char* tags) {
    unit_.resource_manager = manager;
    unit_.state = word;
    unit_.tags = tags;
    return text(kState);
  };
  constexpr const char* kOverLimit = R"({"exit_reason":"TERM_MEMLIMIT","exit_status":"exit"})";
  EXPECT_EQ(state("lsf", "EXIT", kOverLimit), "OUT_OF_MEMORY");
  EXPECT_EQ(state("lsf", "EXIT", R"({"exit_reason":"TERM_RUNLIMIT"})"), "EXIT");
  EXPECT_EQ(state("openpbs", "FAILED", R"({"exit_status":"-27"})"), "OUT_OF_MEMORY");
  EXPECT_EQ(state("openpbs", "FAILED", R"({"exit_status":"-26"})"), "OUT_OF_MEMORY");
  EXPECT_EQ(state("openpbs", "FAILED", R"({"exit_status":"-29"})"), "FAILED");
  EXPECT_EQ(state("openpbs", "FAILED", R"({"exit_status":"265"})"), "FAILED");
  EXPECT_EQ(state("k8s", "Failed", R"({"exit_reason":"OOMKilled"})"), "OUT_OF_MEMORY");
  // A container was killed and ran again; reports call the pod completed, too.
  EXPECT_NE(state("k8s", "Succeeded", R"({"exit_reason":"OOMKilled"})"), "OUT_OF_MEMORY");
  EXPECT_EQ(state("k8s", "Failed", R"({"labels":{"exit_reason":"OOMKilled"}})"), "FAILED");
  EXPECT_EQ(state("slurm", "FAILED", kOverLimit), "FAILED");
  unit_.ended_at_ts = 0;  // it was queued again
  EXPECT_EQ(state("lsf", "RUN", kOverLimit), "RUN");
}

TEST_F(Facts, AreUnknownWhereNothingWasMeasured) {
  for (const std::size_t column : {kCpuUse, kGpuUse, kEnergy, kCpuEnergy, kGpuEnergy, kGrams, kPeak,
                                   kIdle, kNotUsed, kNodes, kLimit, kCpus, kMemory, kGpus}) {
    EXPECT_EQ(number(column), -1) << column;
  }
  maps_[1] = "null";
  maps_[3] = "damaged {";
  EXPECT_EQ(number(kCpuUse), -1);
  EXPECT_EQ(number(kEnergy), -1);
  maps_[5] = R"({"global":80})";  // of a unit without GPUs
  EXPECT_EQ(number(kGpuUse), -1);
}

TEST_F(Facts, TakeTheAllocationInTheTermsOfEachManager) {
  unit_.allocation =
      R"({"billing":8,"cpus":64,"gpus":4,"mem":274877906944,"nodes":2,"time_limit":86400,)"
      R"("array_job":4711,"array_task":5})";
  unit_.tags = R"({"partition":"gpu","uid":1000})";
  EXPECT_EQ(number(kCpus), 64'000);
  EXPECT_EQ(number(kMemory), 274877906944);
  EXPECT_EQ(number(kGpus), 4000);
  EXPECT_EQ(number(kNodes), 2);
  EXPECT_EQ(number(kLimit), 86400);
  EXPECT_EQ(text(kArray), "4711_5");
  unit_.allocation = R"({"het_job":8200,"het_offset":1})";
  EXPECT_EQ(text(kArray), "8200+1");
  EXPECT_EQ(text(kQueue), "gpu");

  unit_.resource_manager = "openstack";
  unit_.allocation = R"({"disk":20,"extra_specs":{"a":"b"},"mem":2048,"name":"m1","vcpus":2})";
  unit_.tags = "{}";
  maps_[0] = R"({"alloc_cpumemtime":204800,"alloc_cputime":200,"walltime":100})";
  EXPECT_EQ(number(kCpus), 2000);
  EXPECT_EQ(number(kMemory), 2048LL << 20);
  EXPECT_EQ(text(kArray), "");
  EXPECT_EQ(text(kQueue), "");

  unit_.resource_manager = "k8s";
  unit_.allocation = R"({"mem":1000,"nvidia.com/gpu":2,"vcpus":0.25})";
  maps_[0] = R"({"alloc_gputime":200,"walltime":100})";
  EXPECT_EQ(number(kCpus), 250);
  EXPECT_EQ(number(kMemory), 1000);
  EXPECT_EQ(number(kGpus), 2000);
}

TEST_F(Facts, SurviveWhatManagersAndUsersWrite) {
  for (const char* hostile : {"", "{", "[]", "null", R"({"cpus":"a"})", R"({"cpus":-1})",
                              R"({"cpus":1e999})", R"({"a":{"b":{"c":[1,{}]}},"cpus":[]})"}) {
    unit_.allocation = hostile;
    unit_.tags = hostile;
    EXPECT_EQ(number(kCpus), -1) << hostile;
  }
  unit_.allocation = R"({"cpus":1e300,"mem":1e300})";
  EXPECT_GT(number(kCpus), 0);
  EXPECT_GT(number(kMemory), 0);
  maps_[1] = R"({"global":1e300})";
  EXPECT_EQ(number(kCpuUse), 1'000'000);  // so that no sum overflows
  unit_.name = std::string(2000, 'x') + "\xC3\xA9";
  EXPECT_EQ(text(kName).size(), 512U);
  unit_.name = std::string(511, 'x') + "\xC3\xA9";
  EXPECT_EQ(text(kName), std::string(511, 'x'));  // not half a character
}

TEST_F(Facts, CountGpuTimeOfTheWindow) {
  unit_.gpu_idle_share = 0.25;
  unit_.peak_memory_bytes = 8e9;
  unit_.idle_kwh = 0.5;
  unit_.not_used_kwh = 0.125;
  EXPECT_EQ(number(kSeenMs), 0);  // no GPU time
  gpu_seconds_ = 100;
  EXPECT_EQ(number(kIdleMs), 25'000);
  EXPECT_EQ(number(kSeenMs), 100'000);
  EXPECT_EQ(number(kPeak), 8'000'000'000);
  EXPECT_EQ(number(kIdle), 500'000'000);
  EXPECT_EQ(number(kNotUsed), 125'000'000);
  for (const double wrong : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    unit_.gpu_idle_share = wrong;
    EXPECT_EQ(number(kSeenMs), 0) << wrong;
  }
  unit_.idle_kwh = std::numeric_limits<double>::infinity();
  EXPECT_EQ(number(kIdle), -1);
}

TEST_F(Facts, OfEachColumnHaveItsType) {
  const auto row = put_facts(source()).values;
  ASSERT_EQ(row.size(), kFactRows.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    const FactChange change = kFactRows.at(i).change;
    EXPECT_EQ(std::holds_alternative<std::string>(row[i]),
              change == FactChange::kText || change == FactChange::kTextKey)
        << kFactRows.at(i).name;
  }
}

TEST_F(Facts, ThatAGapChangesComeInTheOrderOfTheStatement) {
  maps_[0] = R"({"walltime":1800})";
  unit_.uuid = "7";
  unit_.started_at_ts = 5;
  unit_.peak_memory_bytes = 8e9;
  unit_.idle_kwh = 0.5;
  unit_.not_used_kwh = 0.25;
  const std::string text = fill_facts_text();
  const auto values = fill_facts_of(source()).values;
  ASSERT_EQ(static_cast<std::size_t>(std::ranges::count(text, '?')), values.size());
  const auto all = [](std::initializer_list<std::int64_t> numbers) {
    return std::vector<SqlValue>(numbers.begin(), numbers.end());
  };
  EXPECT_EQ(std::vector<SqlValue>(values.begin(), values.begin() + 2), all({1800, 0}));
  // The greatest needs its value twice, and a sum of what is known three times. The last one also
  // needs the idle energy, at its second place.
  EXPECT_EQ(std::vector<SqlValue>(values.end() - 15, values.end() - 3),
            all({8'000'000'000, 8'000'000'000, 0, 0, 500'000'000, 500'000'000, 500'000'000,
                 250'000'000, 500'000'000, 250'000'000, 250'000'000, 250'000'000}));
  EXPECT_EQ(std::vector<SqlValue>(values.end() - 3, values.end()),
            (std::vector<SqlValue>{"hpc", "7", std::int64_t{5}}));
}

TEST(Advice, HasABitForEachRule) {
  EXPECT_EQ(advice_bits(std::array<std::string, 3>{"gpu-unused", "mem-excess", "site-rule"}),
            1 | (1 << 10) | (std::int64_t{1} << 25));  // "other"
  EXPECT_EQ(advice_bits({}), 0);
}

TEST(FactTexts, AreShort) {
  EXPECT_EQ(state_word("CANCELLED by 1000"), "CANCELLED");
  EXPECT_EQ(state_word(" Out_of-memory+"), "OUT_OF-MEMORY");
  EXPECT_EQ(state_word("=cmd|x"), "");
  EXPECT_EQ(state_word(std::string(100, 'A')).size(), 32U);
}

}  // namespace
}  // namespace ceems::store
