#include "gate/api_owners.h"

#include <gtest/gtest.h>

namespace ceems::gate {
namespace {

Result<std::vector<std::string>> names(int status, std::string body) {
  return parse_names({.status = status, .headers = {}, .body = std::move(body)}, "name");
}

TEST(ParseNames, ReadsAList) {
  EXPECT_EQ(names(200, R"({"status":"success","data":[{"name":"a"},{"name":"b","x":1}]})").value(),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names(200, R"({"status":"success","data":[]})").value(), std::vector<std::string>{});
}

TEST(ParseNames, EverythingElseIsNoAnswer) {
  EXPECT_FALSE(names(500, R"({"status":"success","data":[]})"));
  EXPECT_FALSE(names(200, R"({"status":"error","data":[]})"));
  for (const char* body :
       {"", "[]", "{", R"({"status":"success"})", R"({"data":[]})",
        R"({"status":"success","data":null})", R"({"status":"success","data":{"name":"a"}})",
        R"({"status":"success","data":["a"]})", R"({"status":"success","data":[{"name":1}]})",
        R"({"status":"success","data":[{"x":"a"}]})"}) {
    EXPECT_FALSE(names(200, body)) << body;
  }
}

}  // namespace
}  // namespace ceems::gate
