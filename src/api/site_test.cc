#include "api/site.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/accounting/prices.h"
#include "base/version.h"
#include "testing/temp_dir.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;

Result<SiteOptions> site_of(const std::string& text) {
  const auto document = config::parse_yaml(text, "c.yml");
  return document ? read_site((*document)["ui"]) : fail(document.error());
}

std::string site_error(const std::string& url) {
  const auto site = site_of("ui:\n  unit_links:\n    - name: Profiles\n      url: '" + url + "'\n");
  return site ? "no error" : site.error().message;
}

std::string site_json(const SiteOptions& site, bool all = true) {
  return site_json(site, {{.gpus = true, .partitions = false, .updated_ms = 1767225600000}},
                   site.prices.any(), [all](const Budget& /*budget*/) { return all; });
}

std::string place_of(const Result<SiteOptions>& site, const std::string& host) {
  if (!site) {
    return site.error().message;
  }
  const auto place = site->racks.find(host);
  return !place         ? "nowhere"
         : !place->slot ? place->rack
                        : fmt::format("{} {}", place->rack, *place->slot);
}

TEST(Site, KnowsWhereNodesStand) {
  const auto site = site_of("ui:\n  racks:\n    pattern: '(?P<rack>r\\d+)(n(?P<slot>\\d+))?'\n");
  EXPECT_EQ(place_of(site, "r2n07"), "r2 7");
  EXPECT_EQ(place_of(site, "r2"), "r2");
  EXPECT_EQ(place_of(site, "xr2n07"), "nowhere");
  EXPECT_EQ(place_of(site, "r2n99999999999999999999"), "r2");
  EXPECT_EQ(place_of(site_of("data: {}\n"), "r2n07"), "nowhere");

  const testing::TempDir folder;
  const auto file = [&folder](const std::string& text) {
    std::ofstream(folder.path() / "nodes.yml") << text;
    const auto document = config::parse_yaml(
        "ui:\n  racks:\n    file: nodes.yml\n    pattern: '(?P<rack>n).*'\n", "c.yml");
    return document ? read_site((*document)["ui"], folder.path().string()) : fail(document.error());
  };
  const auto both = file("R1: n[01-02],login\nR2:\n  - n[08-09]\n  - gpu1\n");
  EXPECT_EQ(place_of(both, "n02"), "R1 2");
  EXPECT_EQ(place_of(both, "login"), "R1 3");
  EXPECT_EQ(place_of(both, "gpu1"), "R2 3");
  EXPECT_EQ(place_of(both, "n77"), "n");  // the pattern
  EXPECT_THAT(place_of(file("R1: n[01-02]\nR2: n02\n"), ""),
              HasSubstr("node 'n02' is there twice"));
  EXPECT_THAT(place_of(file("R1: n[01\n"), ""), HasSubstr("expected names of nodes"));
  EXPECT_THAT(place_of(file("- n01\n"), ""), HasSubstr("expected the nodes of each rack"));
  for (const auto& [wrong, why] : std::vector<std::pair<std::string, std::string>>{
           {"pattern: 'r(\\d+)'", "expected a group (?P<rack>"},
           {"pattern: '('", "missing )"},
           {"file: /nowhere/nodes.yml", "/nowhere/nodes.yml"},
           {"rack: r1", "rack"}}) {
    EXPECT_THAT(place_of(site_of("ui:\n  racks:\n    " + wrong + "\n"), "n1"), HasSubstr(why))
        << wrong;
  }
}

TEST(Site, HasNothingByDefault) {
  const auto site = site_of("data: {}\n");
  ASSERT_TRUE(site);
  EXPECT_EQ(
      site_json(*site),
      R"({"name":"","currency":"","help_url":"","time_zone":"","unit_word":"","version":")" +
          std::string(version().version) +
          R"(","languages":["en"],)"
          R"("unit_links":[],"priced":false,"tokens":false,"price_kwh":null,"price_core_hour":null,"price_gpu_hour":null,)"
          R"("pue":null,"budgets":[],"clusters":[]})");
}

TEST(Site, IsEmbeddedByTheOriginsThatItNames) {
  EXPECT_TRUE(site_of("ui: {}")->embed_ancestors.empty());
  const auto site =
      site_of("ui: {embed: {ancestors: ['https://portal.example.org', 'http://localhost:8080']}}");
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(site->embed_ancestors,
            (std::vector<std::string>{"https://portal.example.org", "http://localhost:8080"}));
  for (const std::string wrong :
       {"*", "https:", "https://*.example.org", "https://portal.example.org/", "'self'",
        "https://Portal.example.org", "https://portal.example.org:443", "portal.example.org",
        "https://a.example https://b.example", "https://a.example; script-src *", "ftp://a.example",
        "https://a.example/page", "https://user@a.example", "data:", ""}) {
    const auto refused = site_of("ui: {embed: {ancestors: [\"" + wrong + "\"]}}");
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message, HasSubstr("c.yml:1: ui.embed.ancestors")) << wrong;
  }
  EXPECT_FALSE(site_of("ui: {embed: {ancestor: []}}"));
}

TEST(Site, HasPricesAndBudgets) {
  auto site = site_of(
      "ui:\n"
      "  name: Example\n"
      "  currency: EUR\n"
      "  help_url: mailto:help@example.org\n"
      "  price_kwh: 0.24\n"
      "  price_gpu_hour: 1\n"
      "  pue: 1.2\n"
      "  unit_word: job\n"
      "  budgets: [{cluster: hpc-a, project: fluids, kwh_per_month: 3000}]\n");
  ASSERT_TRUE(site) << site.error().message;
  site->clusters = {{.id = "hpc-a", .manager = "slurm", .series = true}};
  EXPECT_THAT(site_json(*site), HasSubstr(R"("price_kwh":0.24,"price_core_hour":null,)"
                                          R"("price_gpu_hour":1,"pue":1.2)"));
  EXPECT_THAT(site_json(*site), HasSubstr(R"("unit_word":"job")"));
  EXPECT_THAT(site_json(*site), HasSubstr(R"("budgets":[{"cluster":"hpc-a","project":"fluids",)"
                                          R"("kwh_per_month":3000}])"));
  EXPECT_THAT(site_json(*site), HasSubstr(R"("clusters":[{"id":"hpc-a","manager":"slurm",)"
                                          R"("series":true,"nodes":true,"gpus":true,)"
                                          R"("partitions":false,"updated":1767225600000}])"));
  EXPECT_THAT(site_json(*site, false), HasSubstr(R"("budgets":[])"));
  const PriceOptions prices = prices_of(*site);
  EXPECT_EQ(Costs(prices, {}).of("hpc-a", 0, 0, 10, 100, 2), 4.4);  // without the PUE
  EXPECT_EQ(Costs(prices, {}).of("hpc-a", 0, 0, std::nullopt, 100, 2), std::nullopt);
  const PriceOptions none = prices_of(SiteOptions{});
  EXPECT_EQ(Costs(none, {}).of("hpc-a", 0, 0, 10, 100, 2), std::nullopt);
}

TEST(Site, RefusesWrongPricesAndBudgets) {
  const auto error = [](const std::string& text) {
    const auto site = site_of("ui: {" + text + "}\n");
    return site ? "no error" : site.error().message;
  };
  EXPECT_THAT(error("price_kwh: 0.2"), HasSubstr("expected a currency"));
  EXPECT_THAT(error("currency: EUR, price_kwh: -1"), HasSubstr("price_kwh: expected a number"));
  EXPECT_THAT(error("currency: EUR, price_kwh: .nan"), HasSubstr("price_kwh"));
  EXPECT_THAT(error("pue: 0.5"), HasSubstr("pue: expected a number from 1"));
  EXPECT_THAT(error("unit_word: jobs"), HasSubstr("unit_word: expected unit, job, vm or pod"));
  EXPECT_THAT(error("help_url: 'javascript:1'"), HasSubstr("help_url"));
  EXPECT_THAT(error("budgets: [{project: a, kwh_per_month: 1}]"), HasSubstr("ID of a cluster"));
  EXPECT_THAT(error("budgets: [{cluster: a, project: a, kwh_per_month: 0}]"), HasSubstr("above 0"));
}

TEST(Site, LinksUnits) {
  const auto site = site_of(
      "ui:\n"
      "  unit_links:\n"
      "    - name: \"Profiles \\\"all\\\"\"\n"
      "      url: https://grafana.example.org/d/p?var-service={uuid}&from={from_ms}&to={to_ms}\n"
      "      clusters: [hpc-a, hpc-b]\n"
      "    - {name: Account, url: '/accounts/{cluster}/{project}#{user}'}\n");
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_THAT(
      site_json(*site),
      HasSubstr(
          R"("unit_links":[{"name":"Profiles \"all\"","url":"https://grafana.example.org/d/p?)"
          R"(var-service={uuid}\u0026from={from_ms}\u0026to={to_ms}","clusters":["hpc-a","hpc-b"]},)"
          R"({"name":"Account","url":"/accounts/{cluster}/{project}#{user}","clusters":[]}])"));
}

TEST(Site, LinksToWebPagesOnly) {
  EXPECT_EQ(site_error("https://a.example.org/{uuid}"), "no error");
  EXPECT_EQ(site_error("/d/{uuid}"), "no error");
  for (const char* url : {"javascript:alert({uuid})", "data:text/html,x", "//evil.example.org/",
                          "/\\evil.example.org/", "ftp://a/", "a/{uuid}", " https://a/", ""}) {
    EXPECT_THAT(site_error(url), HasSubstr("expected a URL with http or https")) << url;
  }
}

TEST(Site, KnowsItsVariables) {
  EXPECT_EQ(site_error("https://a/{job}"),
            "c.yml:4: ui.unit_links[0].url: unknown variable '{job}', expected one of: {uuid} "
            "{cluster} {user} {project} {from_ms} {to_ms}");
  EXPECT_THAT(site_error("https://a/{uuid"), HasSubstr("unknown variable"));
  EXPECT_THAT(site_error("https://a/{}"), HasSubstr("unknown variable"));
}

// A user could otherwise lead the administrators who look at the unit to a server of their own.
TEST(Site, KeepsVariablesOutOfTheNameOfTheServer) {
  for (const char* url : {"https://{project}/", "https://{project}.example.org/",
                          "https://a.example.org:{uuid}", "http://{user}@a.example.org/"}) {
    EXPECT_THAT(site_error(url), HasSubstr("the name of the server cannot contain variables"))
        << url;
  }
}

TEST(Site, RefusesMistakes) {
  const auto error = [](const std::string& text) {
    const auto site = site_of(text);
    return site ? "no error" : site.error().message;
  };
  EXPECT_THAT(error("ui: {unit_link: []}\n"), HasSubstr("did you mean 'unit_links'?"));
  EXPECT_THAT(error("ui: {unit_links: {}}\n"), HasSubstr("expected a list"));
  EXPECT_THAT(error("ui: {unit_links: [{url: 'https://a/'}]}\n"),
              HasSubstr("expected the text of the link"));
  EXPECT_THAT(error("ui: {unit_links: [{name: a, url: 'https://a/', cluster: b}]}\n"),
              HasSubstr("did you mean 'clusters'?"));
}

}  // namespace
}  // namespace ceems::api
