#include "api/login/cookies.h"

#include <gtest/gtest.h>

namespace ceems::api::login {
namespace {

net::Request request(net::Headers headers) {
  net::Request made;
  made.method = "POST";
  made.headers = std::move(headers);
  return made;
}

TEST(Cookies, AllValuesOfTheNameAreFound) {
  const net::Headers headers{{"cookie", "a=1; ceems=x; b=2;ceems=y=z"}, {"Cookie", "ceems=last"}};
  EXPECT_EQ(cookie_values(headers, "ceems"), (std::vector<std::string>{"x", "y=z", "last"}));
  EXPECT_TRUE(cookie_values(headers, "eems").empty());
  EXPECT_TRUE(cookie_values({{"Cookie", "ceems"}}, "ceems").empty());
  EXPECT_TRUE(cookie_values({}, "ceems").empty());
}

TEST(Cookies, ManyOfOneNameAreBoundedInBytes) {
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    many += "ceems=" + std::string(100, 'x') + ";";
  }
  EXPECT_EQ(cookie_values({{"Cookie", many}}, "ceems").size(), 655U);  // 64 KiB
}

TEST(Cookies, BelongToTheHostWhereBrowsersCheckIt) {
  EXPECT_EQ(cookie_name({.path = "/", .secure = true}, "c"), "__Host-c");
  EXPECT_EQ(cookie_name({.path = "/x/", .secure = true}, "c"), "c");
  EXPECT_EQ(cookie_name({.path = "/", .secure = false}, "c"), "c");
}

TEST(Cookies, AreHttpOnlyAndForThisServer) {
  net::Response response;
  set_cookie(response, {.path = "/x/", .secure = true}, "ceems", "v", std::chrono::seconds(60));
  set_cookie(response, {}, "ceems", "", std::chrono::seconds(0));
  ASSERT_EQ(response.headers.size(), 2U);
  EXPECT_EQ(response.headers[0].second,
            "ceems=v; Path=/x/; Max-Age=60; HttpOnly; SameSite=Lax; Secure");
  EXPECT_EQ(response.headers[1].second, "ceems=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
}

TEST(SameSite, UsesFetchMetadataFirst) {
  EXPECT_TRUE(is_same_site(request({{"Sec-Fetch-Site", "same-origin"}}), ""));
  for (const std::string site : {"cross-site", "same-site", "none", ""}) {
    EXPECT_FALSE(is_same_site(
        request({{"Sec-Fetch-Site", site}, {"Origin", "http://h"}, {"Host", "h"}}), ""))
        << site;
  }
}

TEST(SameSite, ThenUsesOrigin) {
  const auto from = [](const std::string& origin, const std::string& host) {
    return is_same_site(request({{"Origin", origin}, {"Host", host}}), "https://ceems.example");
  };
  EXPECT_TRUE(from("http://h:9020", "h:9020"));
  EXPECT_TRUE(from("https://H", "h:443"));
  EXPECT_TRUE(from("https://ceems.example", "127.0.0.1:9020"));
  EXPECT_FALSE(from("https://evil.example", "h"));
  EXPECT_FALSE(from("null", "h"));
  EXPECT_FALSE(from("http://h.evil.example", "h"));
  EXPECT_FALSE(from("http://h:9021", "h:9020"));
  EXPECT_FALSE(from("http://evil@h", "h"));
  EXPECT_FALSE(from("http://", ""));
  EXPECT_TRUE(is_same_site(request({}), ""));  // the form's token decides
}

TEST(Urls, OriginsAndPaths) {
  EXPECT_EQ(origin_of("HTTPS://Ceems.Example:443/x"), "https://ceems.example");
  EXPECT_EQ(origin_of("http://[::1]:8080"), "http://[::1]:8080");
  EXPECT_EQ(origin_of("https://[2001:db8::1]:443/x"), "https://[2001:db8::1]");
  EXPECT_EQ(origin_of("https://h:443:443"), "");
  EXPECT_EQ(origin_of("https://h:"), "");
  EXPECT_EQ(origin_of("https://[::1"), "");
  EXPECT_EQ(origin_of("https://[]"), "");
  EXPECT_EQ(origin_of("https://u@h"), "");
  EXPECT_EQ(origin_of("ftp://h"), "");
  EXPECT_EQ(origin_of("h"), "");
  EXPECT_EQ(origin_of("http://a b"), "");
  EXPECT_EQ(origin_of("http://a\r\nb"), "");
  EXPECT_EQ(path_of("https://h/a/b/?q"), "/a/b");
  EXPECT_EQ(path_of("https://h"), "");
  EXPECT_EQ(path_of("https://h/"), "");
}

}  // namespace
}  // namespace ceems::api::login
