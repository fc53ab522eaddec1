#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "tool/site/nodes.h"
#include "tsdb/fake_transport.h"

namespace ceems::tool {
namespace {

using tsdb::FakeTransport;

constexpr std::int64_t kNowMs = 1'795'000'000'000;
constexpr std::int64_t kNowS = kNowMs / 1000;

/// A series of an instant vector.
std::string series(const std::string& labels, double value) {
  return fmt::format(R"({{"metric":{{{}}},"value":[{},"{}"]}})", labels, kNowS, value);
}

std::string labels(const std::string& node, const std::string& more) {
  return fmt::format(R"("job":"cpu","instance":"{}:9010",{})", node, more);
}

/// A site: the known nodes, and what they report now.
struct Site {
  std::vector<std::string> known, reported;

  void add_known(const std::string& node, const std::string& gpu = "H100", double age_s = 0) {
    known.push_back(series(
        labels(node,
               fmt::format(R"("hostname":"{}","cpu_model":"EPYC","gpu_model":"{}")", node, gpu)),
        static_cast<double>(kNowS) - age_s));
    known.push_back(series(labels(node, R"("hostname":"")"), static_cast<double>(kNowS) - age_s));
  }
  void report(const std::string& node, const std::string& what, double value = 1) {
    reported.push_back(series(labels(node, what), value));
  }
  void add_whole(const std::string& node, const std::string& gpu = "H100") {
    add_known(node, gpu);
    report(node, R"("of":"page")");
    report(node, R"("of":"collector","collector":"cpu")");
    report(node, R"("of":"collector","collector":"gpu")");
    report(node, R"("of":"energy","domain":"node","method":"measured")");
    report(node, R"("of":"GPUs")", 8);
    report(node, R"("of":"active links of the fabric")", 2);
  }
};

std::string said(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.subject, "nodes");
    EXPECT_EQ(finding.state == State::kOk, finding.fix.empty());
    text += fmt::format("{}: {}\n", to_string(finding.state), finding.text);
  }
  return text;
}

NodesReport report_of(const Site& site, std::size_t* queries = nullptr) {
  const auto vector = [](const std::vector<std::string>& all) {
    return FakeTransport::ok(
        fmt::format(R"({{"status":"success","data":{{"resultType":"vector","result":[{}]}}}})",
                    fmt::join(all, ",")));
  };
  ceems::testing::FakeClock clock;
  std::size_t asked = 0;
  auto transport = std::make_unique<FakeTransport>(
      [&](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
        ++asked;
        return vector(request.first("query").contains("7d") ? site.known : site.reported);
      });
  tsdb::Client client("http://prometheus", std::move(transport), clock);
  auto report = examine_nodes(client, kNowMs);
  if (queries != nullptr) {
    *queries = asked;
  }
  return report;
}

TEST(CheckSiteNodes, NamesWhatANodeLacksOfItsClass) {
  Site site;
  for (const char* node : {"g1", "g2", "g3", "g4"}) {
    site.add_whole(node);
  }
  std::size_t queries = 0;
  EXPECT_EQ(said(report_of(site, &queries).findings),
            "ok: 4 in 1 classes report what their class reports\n");
  EXPECT_EQ(queries, 2U);
  // Its GPUs are gone, and with them their model.
  site.add_known("g5", "H100", 7200);
  site.add_known("g5", "");
  site.report("g5", R"("of":"page")");
  site.report("g5", R"("of":"collector","collector":"cpu")");
  site.report("g5", R"("of":"collector","collector":"gpu")", 0);
  site.report("g5", R"("of":"energy","domain":"node","method":"modelled")");
  site.report("g5", R"("of":"active links of the fabric")", 1);
  const auto found = report_of(site);
  EXPECT_EQ(said(found.findings),
            "warning: g5 lacks 8 of 8 GPUs, 1 of 2 active links of the fabric, collector gpu (it "
            "fails), measured node energy, which most of the 5 nodes with EPYC, H100 report\n");
  EXPECT_EQ(found.findings.front().fix,
            "run 'ceems_exporter doctor' on g5 and compare its flags with g1's");
}

TEST(CheckSiteNodes, IsSilentWhereThereIsNoMajority) {
  Site few;
  few.add_whole("g1");
  few.add_whole("g2");
  few.add_known("g3");
  few.report("g3", R"("of":"page")");
  EXPECT_EQ(said(report_of(few).findings), "") << "three are too few";
  Site half;
  for (const char* node : {"g1", "g2", "g3", "g4", "g5", "g6"}) {
    half.add_whole(node);
    if (node[1] > '3') {
      half.report(node, R"("of":"collector","collector":"ebpf")");
    }
  }
  EXPECT_EQ(said(report_of(half).findings), "ok: 6 in 1 classes report what their class reports\n");
  Site other;  // another class
  for (const char* node : {"g1", "g2", "g3", "g4"}) {
    other.add_whole(node);
  }
  other.add_known("c1", "");
  other.report("c1", R"("of":"page")");
  EXPECT_EQ(said(report_of(other).findings),
            "ok: 4 in 1 classes report what their class reports\n");
}

TEST(CheckSiteNodes, ComparesNodesOfUnknownModelsByTheirCollectors) {
  Site site;
  for (const char* node : {"n1", "n2", "n3", "n4", "n5"}) {
    site.known.push_back(series(labels(node, R"("hostname":"")"), kNowS));
    if (std::string_view(node) != "n5") {
      site.report(node, R"("of":"collector","collector":"rapl")");
      site.report(node, R"("of":"GPUs")", 8);
    } else {
      site.report(node, R"("of":"page")");
    }
  }
  EXPECT_EQ(said(report_of(site).findings),
            "warning: n5:9010 lacks collector rapl, which most of the 5 nodes of job cpu report\n");
}

TEST(CheckSiteNodes, NamesNodesThatReportNothing) {
  Site site;
  site.add_whole("g1");
  site.add_known("g2", "H100", 7200);
  site.add_known("g3", "H100", 3 * 86'400);
  // The same node under another address reports.
  site.known.push_back(
      series(R"("job":"cpu","instance":"10.0.0.1:9010","hostname":"g1","cpu_model":"EPYC")",
             static_cast<double>(kNowS) - 7200));
  const auto found = report_of(site);
  EXPECT_EQ(said(found.findings),
            "warning: g2 has reported nothing for up to 2 h\n"
            "warning: g3 has reported nothing for up to 3 d\n");
  EXPECT_EQ(found.reporting, (std::set<std::string, std::less<>>{"g1"}));
}

TEST(CheckSiteNodes, NamesTwentyAtMost) {
  Site site;
  for (int node = 0; node < 23; ++node) {
    site.add_known(fmt::format("g{:02}", node), "H100", 7200);
  }
  const auto found = report_of(site);
  ASSERT_EQ(found.findings.size(), kNodesNamed + 1);
  EXPECT_EQ(found.findings.back().text, "3 more have reported nothing for a while");
}

/// A node that reports now, or that did two hours ago.
void add_address(Site& site, const std::string& more, bool now, double ago_s = 7200) {
  site.known.push_back(series(more, static_cast<double>(kNowS) - (now ? 0 : ago_s)));
  if (now) {
    site.reported.push_back(series(more + R"(,"of":"page")", 1));
  }
}

TEST(CheckSiteNodes, KnowsNodesByTheirClusterAndNewestName) {
  Site site;
  add_address(site, R"("job":"cpu","instance":"10.0.0.1:9010")", true);
  add_address(site, R"("job":"cpu","instance":"10.0.0.2:9010")", false);
  add_address(site, R"("job":"cpu","instance":"n1:9010","cluster":"a")", false);
  add_address(site, R"("job":"cpu","instance":"n1:9010","cluster":"b")", true);
  add_address(site, R"("job":"cpu","instance":"10.0.0.5:9010","hostname":"alpha")", true);
  add_address(site, R"("job":"cpu","instance":"10.0.0.5:9010","hostname":"zeta")", false);
  const auto report = report_of(site);
  EXPECT_EQ(said(report.findings),
            "warning: 10.0.0.2:9010 has reported nothing for up to 2 h\n"
            "warning: n1:9010 has reported nothing for up to 2 h\n");
  EXPECT_EQ(report.reporting, (std::set<std::string, std::less<>>{"10.0.0.1:9010", "alpha", "n1"}));
}

TEST(CheckSiteNodes, TakesOddAnswers) {
  EXPECT_EQ(said(report_of({}).findings), "");
  Site odd;
  odd.known = {series("", 1), series(R"("job":"cpu")", 2),
               R"({"metric":{"instance":"n1"},"value":[0,"NaN"]})",
               series("\"instance\":\"n\\u001b[31m\"", kNowS - 7200)};
  odd.reported = {series("", 1), series(R"("of":"collector")", 1),
                  series(R"("instance":"n9","of":"GPUs")", 8)};
  EXPECT_EQ(said(report_of(odd).findings),
            "warning: n\\x1b[31m has reported nothing for up to 2 h\n");
  ceems::testing::FakeClock clock;
  tsdb::Client down("http://prometheus", std::make_unique<FakeTransport>([](const auto&) {
                      return Result<net::ClientResponse>(fail(ErrorCode::kUnavailable, "down"));
                    }),
                    clock);
  EXPECT_EQ(said(examine_nodes(down, kNowMs).findings),
            "warning: they cannot be compared: TSDB: down\n");
}

std::string unit(const std::string& cluster, const std::string& nodes) {
  return fmt::format(R"({{"cluster_id":"{}","tags":{{"nodelist":"{}"}}}})", cluster, nodes);
}

std::string missing(const std::vector<std::string>& units) {
  return said(compare_with_units(fmt::format(R"({{"data":[{}]}})", fmt::join(units, ",")),
                                 {"n1", "n2", "n3"}));
}

TEST(CheckSiteNodes, NamesNodesOfUnitsThatReportNothing) {
  EXPECT_EQ(missing({unit("a", "n[1-2]"), unit("a", "n3.site.org|n4")}),
            "warning: n4 reports nothing, but ran units of cluster a in the last day\n");
  EXPECT_EQ(missing({unit("a", "n[1-3]")}), "");
  EXPECT_EQ(missing({unit("a", "n1"), unit("b", "x[1-2],n1")}), "") << "other names";
  for (const char* odd :
       {"null", "{}", R"({"cluster_id":1,"tags":{"nodelist":"n9"}})",
        R"({"cluster_id":"a","tags":[]})", R"({"cluster_id":"a","tags":{"nodelist":7}})",
        R"({"cluster_id":"a","tags":{"nodelist":"n[1-"}})"}) {
    EXPECT_EQ(missing({unit("a", "n[1-2]"), odd}), "") << odd;
  }
  for (const char* answer : {"", "<html>", "[]", R"({"data":{}})"}) {
    EXPECT_EQ(said(compare_with_units(answer, {"n1"})), "") << answer;
  }
}

}  // namespace
}  // namespace ceems::tool
