#pragma once

// The fixture of the tests of Gate.

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "gate/gate.h"
#include "testing/fake_clock.h"

namespace ceems::gate {

/// alice owns own, own1 and own2 of cluster c1, dup of both clusters; root is an admin.
class FakeOwners final : public Owners {
 public:
  Result<bool> is_admin(const std::string& user) override {
    if (broken) {
      return fail(ErrorCode::kUnavailable, "database is away");
    }
    return user == "root";
  }
  Result<bool> may_see(const std::string& user,
                       const std::string& cluster,
                       const UnitSet& units) override {
    if (broken) {
      return fail(ErrorCode::kUnavailable, "database is away");
    }
    const auto found = owned.find({user, cluster});
    return !units.empty() && found != owned.end() && std::ranges::includes(found->second, units);
  }
  Result<UnitSet> units_of(const std::string& user,
                           const std::string& cluster,
                           const promql::TimeSpan& alive,
                           std::size_t limit) override {
    asked.push_back(alive);
    const auto found = owned.find({user, cluster});
    const bool none = found == owned.end() || (limit > 1 && none_alive);
    return none ? UnitSet{} : found->second;
  }
  Result<SharedIds> shared_ids(const std::string& /*user*/,
                               const std::string& /*cluster*/,
                               const UnitSet& /*units*/) override {
    return fail(ErrorCode::kUnavailable, "nobody may ask");
  }

  bool broken = false;
  bool none_alive = false;
  std::vector<promql::TimeSpan> asked = {};
  std::map<std::pair<std::string, std::string>, UnitSet> owned = {
      {{"alice", "c1"}, {"dup", "own", "own1", "own2"}},
      {{"alice", "c2"}, {"dup", "far"}},
  };
};

inline std::string encoded(std::string_view text) {
  return net::url_encode(text);
}

class GateTest : public ::testing::Test {
 protected:
  Gate gate() { return {BackendType::kTsdb, rules, &owners}; }

  Checked<Decision> send(std::string_view method,
                         const std::string& target,
                         std::string_view body = {},
                         std::string_view content_type = "application/x-www-form-urlencoded") {
    const ParsedRequest request({.method = method,
                                 .target = target,
                                 .content_type = content_type,
                                 .content_encoding = content_encoding,
                                 .body = body});
    auto decided = gate().decide(request, headers);
    // What is decided at once, from memory, is never anything else.
    const auto remembering = cached_owners(owners, clock);
    const Gate warm(BackendType::kTsdb, rules, remembering.get());
    (void)warm.decide(request, headers);
    const auto inline_decision = warm.decide_inline(request, headers);
    decided_inline = inline_decision.has_value();
    if (inline_decision) {
      EXPECT_TRUE(decided) << target;
      EXPECT_EQ(inline_decision->user, decided->user);
      EXPECT_EQ(inline_decision->cluster, decided->cluster);
      EXPECT_EQ(inline_decision->admin, decided->admin);
      EXPECT_EQ(inline_decision->units, decided->units);
      EXPECT_EQ(inline_decision->forward.method, decided->forward.method);
      EXPECT_EQ(inline_decision->forward.path, decided->forward.path);
      EXPECT_EQ(inline_decision->forward.query, decided->forward.query);
      EXPECT_EQ(inline_decision->forward.body, decided->forward.body);
    }
    return decided;
  }
  Checked<Decision> ask(std::string_view query) {
    return send("GET", "/api/v1/query?query=" + encoded(query));
  }
  /// The canonical query that goes on, or status and reason.
  std::string outcome(std::string_view query) { return text_of(ask(query), "query"); }

  static std::string text_of(const Checked<Decision>& answer, std::string_view field) {
    if (!answer) {
      return std::to_string(answer.error().status) + " " + std::string(answer.error().reason);
    }
    const std::string& text =
        answer->forward.method == "POST" ? answer->forward.body : answer->forward.query;
    const auto fields = parse_form(text);
    if (fields) {
      for (const auto& [name, value] : *fields) {
        if (name == field) {
          return value;
        }
      }
    }
    return text;
  }

  FakeOwners owners;
  testing::FakeClock clock;
  bool decided_inline = false;  ///< of the request sent last
  GateRules rules{.clusters = {"c1", "c2"}};
  net::Headers headers = {{"X-Grafana-User", "alice"}, {"X-Ceems-Cluster-Id", "c1"}};
  std::string content_encoding;
};

}  // namespace ceems::gate
