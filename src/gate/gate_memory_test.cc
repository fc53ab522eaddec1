// What the gate decides at once, from memory.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "gate/gate_test_support.h"

namespace ceems::gate {
namespace {

TEST_F(GateTest, WhatIsKnownPassesAtOnce) {
  EXPECT_TRUE(ask(R"(rate(x{uuid=~"own|own1",node=~"n[0-9]+"}[5m]))"));
  EXPECT_TRUE(decided_inline);
  EXPECT_TRUE(send("POST", "/api/v1/query", "query=" + encoded(R"(x{uuid="own"})")));
  EXPECT_TRUE(decided_inline);
  EXPECT_FALSE(ask(R"(x{uuid="foreign"})"));
  EXPECT_FALSE(decided_inline);
  EXPECT_TRUE(ask(R"(x{uuid="own",node="a"})" + std::string(5000, ' ')));
  EXPECT_FALSE(decided_inline) << "long";
  rules.confine = true;
  EXPECT_TRUE(ask("x"));
  EXPECT_FALSE(decided_inline) << "the set of all units";
}

TEST_F(GateTest, KnownQueriesAreJudgedAnewForEachUser) {
  const auto remembering = cached_owners(owners, clock);
  const Gate gate(BackendType::kTsdb, rules, remembering.get());
  const auto ask_as = [&](const std::string& user, const std::string& cluster,
                          std::string_view query, std::string_view more = {}) {
    const std::string target = "/api/v1/query?query=" + encoded(query) + std::string(more);
    return gate.decide(ParsedRequest({.method = "GET",
                                      .target = target,
                                      .content_type = {},
                                      .content_encoding = {},
                                      .body = {}}),
                       {{"X-Grafana-User", user}, {"X-Ceems-Cluster-Id", cluster}});
  };
  const std::string_view own = R"(sum(x{uuid=~"own[12]"}))";
  for (int i = 0; i < 2; ++i) {
    const auto alice = ask_as("alice", "c1", own, "&time=" + std::to_string(i));
    ASSERT_TRUE(alice);
    EXPECT_EQ(alice->units, (std::vector<std::string>{"own1", "own2"}));
    EXPECT_EQ(alice->forward.query,
              "query=" + encoded(R"(sum(x{uuid=~"own[12]"}))") + "&time=" + std::to_string(i));
    EXPECT_EQ(text_of(ask_as("bob", "c1", own), "query"), "403 foreign_unit");
    EXPECT_EQ(text_of(ask_as("alice", "c2", own), "query"), "403 foreign_unit");
    const auto moved = ask_as("alice", "c1", R"(x{uuid="far",ceems_id="c2"})");
    ASSERT_TRUE(moved);
    EXPECT_EQ(moved->cluster, "c2");
    EXPECT_EQ(text_of(ask_as("alice", "c1", "x"), "query"), "403 no_unit");
  }
}

TEST_F(GateTest, WhatDependsOnTheUserIsNotKept) {
  rules.confine = true;
  owners.owned[{"bob", "c1"}] = {"bobs"};
  const Gate gate(BackendType::kTsdb, rules, &owners);
  const auto query_of = [&](const std::string& user) {
    return text_of(gate.decide(ParsedRequest({.method = "GET",
                                              .target = "/api/v1/query?query=x",
                                              .content_type = {},
                                              .content_encoding = {},
                                              .body = {}}),
                               {{"X-Grafana-User", user}, {"X-Ceems-Cluster-Id", "c1"}}),
                   "query");
  };
  EXPECT_EQ(query_of("bob"), R"(x{uuid="bobs"})");
  EXPECT_EQ(query_of("alice"), R"(x{uuid=~"dup|own|own1|own2"})");
  EXPECT_EQ(query_of("bob"), R"(x{uuid="bobs"})");
  rules.confine = false;
  rules.pin_cluster = true;
  rules.clusters = {"c1", "c2"};
  const Gate pinned(BackendType::kTsdb, rules, &owners);
  for (const std::string cluster : {"c1", "c2", "c1"}) {
    EXPECT_EQ(text_of(pinned.decide(
                          ParsedRequest({.method = "GET",
                                         .target = "/api/v1/query?query=x%7Buuid%3D%22dup%22%7D",
                                         .content_type = {},
                                         .content_encoding = {},
                                         .body = {}}),
                          {{"X-Grafana-User", "alice"}, {"X-Ceems-Cluster-Id", cluster}}),
                      "query"),
              R"(x{uuid="dup", ceems_id=")" + cluster + "\"}");
  }
}

TEST_F(GateTest, NothingUnknownPassesAtOnce) {
  const auto remembering = cached_owners(owners, clock);
  const Gate gate(BackendType::kTsdb, rules, remembering.get());
  const std::string target = "/api/v1/query?query=" + encoded(R"(x{uuid="own",node=~"n.*"})");
  const ParsedRequest request(
      {.method = "GET", .target = target, .content_type = {}, .content_encoding = {}, .body = {}});
  EXPECT_FALSE(gate.decide_inline(request, headers)) << "neither the user nor the unit is known";
  EXPECT_TRUE(remembering->is_admin("alice"));
  EXPECT_TRUE(remembering->may_see("alice", "c1", {"own"}).value_or(false));
  EXPECT_FALSE(gate.decide_inline(request, headers)) << "the pattern is not known";
  EXPECT_TRUE(gate.decide(request, headers));
  EXPECT_TRUE(gate.decide_inline(request, headers));
  clock.advance(std::chrono::seconds(15));
  EXPECT_FALSE(gate.decide_inline(request, headers)) << "too old";
}

}  // namespace
}  // namespace ceems::gate
