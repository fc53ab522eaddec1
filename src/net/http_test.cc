#include "net/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::net {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(Http, FindsHeadersWithoutCase) {
  const Headers headers = {{"Accept", "a"}, {"accept", "b"}, {"Empty", ""}};
  EXPECT_EQ(*find_header(headers, "ACCEPT"), "a");
  EXPECT_EQ(*find_header(headers, "empty"), "");
  EXPECT_EQ(find_header(headers, "Accep"), nullptr);
  Response response;
  response.set_header("X-A", "1");
  response.set_header("x-a", "2");
  ASSERT_EQ(response.headers.size(), 1U);
  EXPECT_EQ(response.headers[0].second, "2");
}

TEST(Http, ReadsQueries) {
  EXPECT_EQ(parse_query(""), Pairs());
  EXPECT_EQ(parse_query("a=1&b=2&a=3"), (Pairs{{"a", "1"}, {"b", "2"}, {"a", "3"}}));
  EXPECT_EQ(parse_query("a+b=c+d%2B&%41=%e4"), (Pairs{{"a b", "c d+"}, {"A", "\xe4"}}));
  EXPECT_EQ(parse_query("&&flag&x=&=y&a=b=c"),
            (Pairs{{"flag", ""}, {"x", ""}, {"", "y"}, {"a", "b=c"}}));
  EXPECT_EQ(parse_query("a=%&b=%4&c=%zz&d=100%"),
            (Pairs{{"a", "%"}, {"b", "%4"}, {"c", "%zz"}, {"d", "100%"}}));
}

TEST(Http, EncodesAndDecodes) {
  EXPECT_EQ(url_encode("aZ09-._~ /+%\xff"), "aZ09-._~%20%2F%2B%25%FF");
  EXPECT_EQ(url_decode("a%20b+c%2f"), "a b+c/");
  EXPECT_EQ(url_decode("a+b%2Bc%20", Plus::kIsBlank), "a b+c ");
  EXPECT_EQ(url_decode("+%", Plus::kIsBlank), std::nullopt);
  std::string begun = "x=";
  append_url_encoded(begun, "a b");
  append_url_encoded(begun, "");
  EXPECT_EQ(begun, "x=a%20b");
  EXPECT_EQ(url_decode("%"), std::nullopt);
  EXPECT_EQ(url_decode("%4"), std::nullopt);
  EXPECT_EQ(url_decode("%4g"), std::nullopt);
  std::string all;
  for (int c = 0; c < 256; ++c) {
    all += static_cast<char>(c);
  }
  EXPECT_EQ(url_decode(url_encode(all)), all);
}

TEST(Http, CleansPaths) {
  for (const char* clean : {"/", "/metrics", "/a/b/", "/a..b", "/.a"}) {
    EXPECT_EQ(clean_path(clean), std::nullopt) << clean;
  }
  EXPECT_EQ(clean_path("//metrics"), "/metrics");
  EXPECT_EQ(clean_path("/a/../metrics"), "/metrics");
  EXPECT_EQ(clean_path("/../../x"), "/x");
  EXPECT_EQ(clean_path("/a/./b//"), "/a/b/");
  EXPECT_EQ(clean_path("/a/.."), "/");
  EXPECT_EQ(clean_path(""), "/");
}

TEST(Http, RedirectsToTheCleanPathWithTheQuery) {
  Request request;
  request.path = "//evil.example/\r\nX: y/..";
  request.query = "a=b&c=%20";
  Response response;
  ASSERT_TRUE(redirect_to_clean_path(request, response));
  EXPECT_EQ(response.status, 301);
  EXPECT_EQ(*find_header(response.headers, "Location"), "/evil.example?a=b&c=%20");
  request.path = "/a\r\n//b";
  ASSERT_TRUE(redirect_to_clean_path(request, response));
  EXPECT_EQ(*find_header(response.headers, "Location"), "/a%0D%0A/b?a=b&c=%20");
  request.path = "/ok";
  EXPECT_FALSE(redirect_to_clean_path(request, response));
}

}  // namespace
}  // namespace ceems::net
