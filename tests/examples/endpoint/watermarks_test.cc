#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/endpoints/endpoint_test_support.h"

namespace ceems::api {

Endpoints watermarks_endpoints();  // of an endpoint of the API server: its line in endpoints/all.h

namespace {

using ::testing::HasSubstr;

class Watermarks : public EndpointTest {
 protected:
  std::string rows(const std::string& query) {
    return answer(watermarks_endpoints().front(), query).body;
  }
};

TEST_F(Watermarks, AreTheEndsOfTheLastWindows) {
  EXPECT_EQ(rows(""),
            fmt::format(R"({{"status":"success","data":[{{"cluster":"hpc-a","read_ts":{0}}},)"
                        R"({{"cluster":"hpc-b","read_ts":{0}}}]}})"
                        "\n",
                        kNow));
}

TEST_F(Watermarks, AreThoseOfTheRequestedClusters) {
  EXPECT_THAT(rows("cluster_id=hpc-b"), HasSubstr(R"("data":[{"cluster":"hpc-b",)"));
  EXPECT_THAT(rows("cluster_id=hpc-c"), HasSubstr(R"("data":[])"));
}

// The API server's endpoints are checked by src/api/access_matrix_test.cc.
TEST_F(Watermarks, HaveARowInTheDocumentation) {
  std::ifstream file(CEEMS_TEST_ROOT "/examples/endpoint/endpoints.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  for (const Endpoint& endpoint : watermarks_endpoints()) {
    EXPECT_THAT(page, HasSubstr(fmt::format("| `{}` | ", endpoint.path)));
  }
}

}  // namespace
}  // namespace ceems::api
