#include "webui/asset.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "webui/files.h"

namespace ceems::webui {
namespace {

Asset asset(std::string_view path) {
  return find(path).value_or(Asset{});
}

TEST(WebUi, FindsOnlyEmbeddedFiles) {
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
    ASSERT_TRUE(find(file.path)) << file.path;
    const auto found = asset(file.path);
    EXPECT_EQ(found.content.data(), file.content.data());
    EXPECT_FALSE(found.content_type.empty());
    ASSERT_EQ(found.etag.size(), 22U) << found.etag;
    EXPECT_EQ(found.etag.front(), '"');
    EXPECT_EQ(found.etag.back(), '"');
    if (!found.gzip.empty()) {
      EXPECT_LT(found.gzip.size(), found.content.size());
      EXPECT_EQ(found.gzip.substr(0, 2), "\x1f\x8b");
    }
  }
}

TEST(WebUi, RootIsThePage) {
  if (!available()) {
    GTEST_SKIP() << "this build has no web page (no npm, or -DCEEMS_WEB_UI=OFF)";
  }
  const auto page = asset("");
  EXPECT_EQ(asset("/").content.data(), page.content.data());
  EXPECT_EQ(asset("/index.html").content.data(), page.content.data());
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_FALSE(page.immutable);
  EXPECT_NE(page.content.find("id=\"app\""), std::string_view::npos);
}

TEST(WebUi, PageNeedsNoInlineScriptOrStyle) {
  if (!available()) {
    GTEST_SKIP() << "this build has no web page (no npm, or -DCEEMS_WEB_UI=OFF)";
  }
  const auto page = asset("").content;
  EXPECT_EQ(page.find("<script>"), std::string_view::npos);
  EXPECT_EQ(page.find("<style"), std::string_view::npos);
  EXPECT_EQ(page.find("style="), std::string_view::npos);
  EXPECT_EQ(page.find("http://"), std::string_view::npos);
  EXPECT_EQ(page.find("https://"), std::string_view::npos);
}

TEST(WebUi, HashedNamesAreImmutable) {
  for (const auto& file : files()) {
    EXPECT_EQ(asset(file.path).immutable, file.path.starts_with("assets/")) << file.path;
  }
}

}  // namespace
}  // namespace ceems::webui
