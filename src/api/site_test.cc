#include "api/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using ::testing::HasSubstr;

Result<SiteOptions> read(const std::string& text) {
  const auto document = config::parse_yaml(text, "c.yml");
  return document ? read_site((*document)["ui"]) : fail(document.error());
}

std::string error_of(const std::string& url) {
  const auto site = read("ui:\n  unit_links:\n    - name: Profiles\n      url: '" + url + "'\n");
  return site ? "no error" : site.error().message;
}

TEST(Site, HasNoLinksByDefault) {
  const auto site = read("data: {}\n");
  ASSERT_TRUE(site);
  EXPECT_EQ(site_json(*site), R"({"unit_links":[]})");
}

TEST(Site, LinksUnits) {
  const auto site = read(
      "ui:\n"
      "  unit_links:\n"
      "    - name: \"Profiles \\\"all\\\"\"\n"
      "      url: https://grafana.example.org/d/p?var-service={uuid}&from={from_ms}&to={to_ms}\n"
      "      clusters: [hpc-a, hpc-b]\n"
      "    - {name: Account, url: '/accounts/{cluster}/{project}#{user}'}\n");
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(
      site_json(*site),
      R"({"unit_links":[{"name":"Profiles \"all\"","url":"https://grafana.example.org/d/p?)"
      R"(var-service={uuid}\u0026from={from_ms}\u0026to={to_ms}","clusters":["hpc-a","hpc-b"]},)"
      R"({"name":"Account","url":"/accounts/{cluster}/{project}#{user}","clusters":[]}]})");
}

TEST(Site, LinksToWebPagesOnly) {
  EXPECT_EQ(error_of("https://a.example.org/{uuid}"), "no error");
  EXPECT_EQ(error_of("/d/{uuid}"), "no error");
  for (const char* url : {"javascript:alert({uuid})", "data:text/html,x", "//evil.example.org/",
                          "/\\evil.example.org/", "ftp://a/", "a/{uuid}", " https://a/", ""}) {
    EXPECT_THAT(error_of(url), HasSubstr("expected a URL with http or https")) << url;
  }
}

TEST(Site, KnowsItsVariables) {
  EXPECT_EQ(error_of("https://a/{job}"),
            "c.yml:4: ui.unit_links[0].url: unknown variable '{job}', expected one of: {uuid} "
            "{cluster} {user} {project} {from_ms} {to_ms}");
  EXPECT_THAT(error_of("https://a/{uuid"), HasSubstr("unknown variable"));
  EXPECT_THAT(error_of("https://a/{}"), HasSubstr("unknown variable"));
}

// A user could otherwise lead the administrators who look at the unit to a server of their own.
TEST(Site, KeepsVariablesOutOfTheNameOfTheServer) {
  for (const char* url : {"https://{project}/", "https://{project}.example.org/",
                          "https://a.example.org:{uuid}", "http://{user}@a.example.org/"}) {
    EXPECT_THAT(error_of(url), HasSubstr("the name of the server cannot contain variables")) << url;
  }
}

TEST(Site, RefusesMistakes) {
  const auto error = [](const std::string& text) {
    const auto site = read(text);
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
