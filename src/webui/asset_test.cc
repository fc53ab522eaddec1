#include "webui/asset.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "webui/files.h"

namespace ceems::webui {
namespace {

TEST(WebUi, FindsNothingButEmbeddedFiles) {
  EXPECT_FALSE(find("no-such-file.js"));
  EXPECT_FALSE(find("../index.html"));
  EXPECT_FALSE(find("//index.html"));
  EXPECT_FALSE(find("index.htm"));
  EXPECT_FALSE(find("index.htmll"));
}

TEST(WebUi, TableIsSortedAndComplete) {
  const auto all = files();
  EXPECT_TRUE(std::ranges::is_sorted(all, {}, &File::path));
  for (const auto& file : all) {
    const auto asset = find(file.path);
    ASSERT_TRUE(asset) << file.path;
    EXPECT_EQ(asset->content.data(), file.content.data());
    EXPECT_FALSE(asset->content_type.empty());
    EXPECT_EQ(asset->etag.size(), 22U) << asset->etag;
    EXPECT_EQ(asset->etag.front(), '"');
    EXPECT_EQ(asset->etag.back(), '"');
    if (!asset->gzip.empty()) {
      EXPECT_LT(asset->gzip.size(), asset->content.size());
      EXPECT_EQ(asset->gzip.substr(0, 2), "\x1f\x8b");
    }
  }
}

TEST(WebUi, RootIsThePage) {
  if (!available()) {
    GTEST_SKIP() << "this build has no web page (no npm, or -DCEEMS_WEB_UI=OFF)";
  }
  const auto page = find("");
  ASSERT_TRUE(page);
  EXPECT_EQ(find("/")->content.data(), page->content.data());
  EXPECT_EQ(find("/index.html")->content.data(), page->content.data());
  EXPECT_EQ(page->content_type, "text/html; charset=utf-8");
  EXPECT_FALSE(page->immutable);
  EXPECT_NE(page->content.find("id=\"app\""), std::string_view::npos);
}

TEST(WebUi, PageNeedsNoInlineScriptOrStyle) {
  if (!available()) {
    GTEST_SKIP() << "this build has no web page (no npm, or -DCEEMS_WEB_UI=OFF)";
  }
  const auto page = find("")->content;
  EXPECT_EQ(page.find("<script>"), std::string_view::npos);
  EXPECT_EQ(page.find("<style"), std::string_view::npos);
  EXPECT_EQ(page.find("style="), std::string_view::npos);
  EXPECT_EQ(page.find("http://"), std::string_view::npos);
  EXPECT_EQ(page.find("https://"), std::string_view::npos);
}

TEST(WebUi, HashedNamesAreImmutable) {
  for (const auto& file : files()) {
    EXPECT_EQ(find(file.path)->immutable, file.path.starts_with("assets/")) << file.path;
  }
}

}  // namespace
}  // namespace ceems::webui
