#include "api/request/paging.h"

#include <gtest/gtest.h>

#include "crypto/base64.h"

namespace ceems::api {
namespace {

using Texts = std::vector<std::string>;

Result<std::optional<Page>> page_of(const std::string& limit,
                                    const std::string& cursor,
                                    std::string_view listing = "units",
                                    std::size_t key_size = 3) {
  Params params;
  params.limit = limit;
  params.cursor = cursor;
  return parse_page(params, listing, key_size);
}

TEST(Paging, CursorsRoundTrip) {
  for (const Texts& key : {Texts{"hpc-a", "7001", "2031-04-05T06:07:30+0200"}, Texts{"", "", ""},
                           Texts{std::string("\0\xFF/", 3), "ü", std::string(1000, 'x')}}) {
    const auto page = page_of("10", cursor_text("units", key));
    ASSERT_TRUE(page) << page.error().message;
    ASSERT_TRUE(*page);
    EXPECT_EQ((*page)->after, key);
    EXPECT_EQ((*page)->limit, 10U);
  }
}

TEST(Paging, CursorsHoldOnlyCharactersThatNeedNoEscape) {
  const std::string cursor = cursor_text("units", {"\xFB\xFF", "?&=#", "<>"});
  EXPECT_EQ(
      cursor.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
      std::string::npos);
}

TEST(Paging, ForeignAndChangedCursorsAreRefused) {
  const std::string good = cursor_text("units", {"a", "b", "c"});
  EXPECT_TRUE(page_of("1", good));
  const auto refused = [](const Result<std::optional<Page>>& page) {
    return !page && page.error().message == "query parameter 'cursor': malformed cursor";
  };
  EXPECT_TRUE(refused(page_of("1", good, "units/admin")));
  EXPECT_TRUE(refused(page_of("1", cursor_text("users", {"a", "b"}))));
  EXPECT_TRUE(refused(page_of("1", good, "units", 2)));
  EXPECT_TRUE(refused(page_of("1", good + "=")));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_TRUE(refused(page_of("1", changed))) << i;
    EXPECT_TRUE(i == 0 || refused(page_of("1", good.substr(0, i)))) << i;
  }
  // The sum of a text that a client made up is easy to forge; the parts still have to be whole.
  EXPECT_TRUE(refused(page_of("1", crypto::base64url_encode("\x01"))));
  EXPECT_TRUE(refused(page_of("1", "%00")));
}

TEST(Paging, LimitsAreWholeNumbersUpToTheMaximum) {
  EXPECT_EQ(page_of("", "").value(), std::nullopt);
  EXPECT_EQ(page_of("1", "").value().value().limit, 1U);
  EXPECT_EQ(page_of("5000", "").value().value().limit, 5000U);
  EXPECT_EQ(page_of("", cursor_text("units", {"a", "b", "c"})).value().value().limit, 1000U);
  for (const char* bad : {"0", "-1", "5001", "1.5", "1e2", " 1", "ten", "99999999999999999999"}) {
    const auto page = page_of(bad, "");
    ASSERT_FALSE(page) << bad;
    EXPECT_EQ(page.error().message,
              "query parameter 'limit': expected a whole number from 1 to 5000");
  }
}

}  // namespace
}  // namespace ceems::api
