#include "quiet.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::example {
namespace {

using ::testing::ElementsAre;

Result<QuietOptions> read(std::string_view text) {
  const auto document = config::parse_yaml(text, "config.yml");
  return document ? read_quiet((*document)["quiet"]) : fail(document.error());
}

TEST(Quiet, HasDefaultsAndIsRead) {
  EXPECT_EQ(read("")->from, 22);
  EXPECT_EQ(read("quiet: {until: 6}")->from, 22);
  const auto options = read("quiet: {from: 20, until: 6, clusters: [hpc-a]}");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->from, 20);
  EXPECT_EQ(options->until, 6);
  EXPECT_THAT(options->clusters, ElementsAre("hpc-a"));
}

TEST(Quiet, ReportsMistakesWithTheirLine) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"quiet:\n  frm: 20", "config.yml:2: quiet.frm: unknown key, did you mean 'from'?"},
           {"quiet: {from: 24}", "config.yml:1: quiet.from: expected an hour from 0 to 23"},
           {"quiet: {until: -1}", "config.yml:1: quiet.until: expected an hour from 0 to 23"},
           {"quiet: {clusters: hpc-a}", "config.yml:1: quiet.clusters: expected a list"},
           {"quiet: 7", "config.yml:1: quiet: expected a mapping"}}) {
    const auto options = read(text);
    ASSERT_FALSE(options) << text;
    EXPECT_THAT(options.error().message, ::testing::StartsWith(message));
  }
}

}  // namespace
}  // namespace ceems::example
