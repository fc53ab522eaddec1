#include "api/check/elsewhere.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ElsewhereTest : public ::testing::Test {
 protected:
  /// The names and texts of what is found.
  [[nodiscard]] std::vector<std::string> found(const std::string& language = "en") const {
    std::vector<std::string> all;
    for (const Elsewhere& one :
         find_elsewhere(resources_, request_, expected_, unused_, "EUR", language)) {
      all.push_back(one.resource->site + one.resource->partition + ": " + one.text);
    }
    return all;
  }

  std::vector<Resource> resources_{
      {.cluster = "a",
       .partition = "gpu",
       .cpus = 64,
       .memory = 512e9,
       .gpus = 4,
       .core_hour = 0.02,
       .gpu_hour = 1},
      {.partition = "cpu",
       .nodes = 10,
       .cpus = 64,
       .memory = 256e9,
       .time_limit = 86400,
       .core_hour = 0.01},
      {.cluster = "b", .partition = "other", .cpus = 64, .core_hour = 0}};
  JobRequest request_{.cluster_id = "a",
                      .partition = "gpu",
                      .nodes = 1,
                      .cpus = 32,
                      .gpus = 2,
                      .memory = 128e9,
                      .time_limit = 43200};
  Expected expected_{.elapsed = report::Range{.mid = 3600, .low = 3000, .high = 4000}};
  Unused unused_;
};

TEST_F(ElsewhereTest, IsNothingWhereTheRequestDoesNotFit) {
  EXPECT_THAT(found(), IsEmpty());  // the GPUs are used
  resources_.clear();
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(ElsewhereTest, IsWhereItCostsLess) {
  unused_.gpus = 2;
  EXPECT_THAT(found(), ElementsAre("cpu: The job fits into the partition cpu, where it costs about "
                                   "0.32 EUR instead of 2.64 EUR."));
  resources_[1].core_hour = 0.5;  // dearer, but without GPUs that nothing uses
  EXPECT_THAT(found(), ElementsAre("cpu: The job fits into the partition cpu, which has no GPUs. "
                                   "Runs like this one need none."));
  EXPECT_THAT(found("de").front(), ::testing::HasSubstr("Der Job passt in die Partition cpu"));
}

TEST_F(ElsewhereTest, FitsIntoNodesTimeAndNumber) {
  unused_.gpus = 2;
  ASSERT_EQ(found().size(), 1U);
  request_.memory = 300e9;
  EXPECT_THAT(found(), IsEmpty());
  request_.nodes = 2;
  EXPECT_EQ(found().size(), 1U);
  request_.nodes = 11;
  EXPECT_THAT(found(), IsEmpty());
  request_.nodes = 2;
  request_.cpus = 129;
  EXPECT_THAT(found(), IsEmpty());
  request_.cpus = 32;
  request_.time_limit = 86401;
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(ElsewhereTest, IsAnotherSiteForLargeJobs) {
  resources_.push_back({.site = "National", .gpus = 8, .least_gpus = 64});
  EXPECT_THAT(found(), IsEmpty());
  request_.nodes = 16;
  request_.gpus = 64;
  EXPECT_THAT(found(), ElementsAre("National: A job of this size suits National."));
}

TEST_F(ElsewhereTest, SaysNothingOfADifferenceThatIsNotKnown) {
  request_.gpus = 0;
  request_.partition = "unlisted";
  EXPECT_THAT(found(), IsEmpty());
  expected_.elapsed.reset();
  request_.partition = "gpu";
  EXPECT_THAT(found(), ElementsAre("cpu: The job fits into the partition cpu, which has no GPUs. "
                                   "Runs like this one need none."));
}

}  // namespace
}  // namespace ceems::api
