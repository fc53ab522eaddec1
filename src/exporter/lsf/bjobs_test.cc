#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/lsf/allocations.h"

namespace ceems::exporter::lsf {
namespace {

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

}  // namespace
}  // namespace ceems::exporter::lsf
