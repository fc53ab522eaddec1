#include "net/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/base64.h"
#include "net/digest.h"
#include "net/request_parser.h"

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

TEST(Http, Base64GoesBothWays) {
  for (const auto& [plain, coded] : Pairs{{"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"\xff\xfe\xfd", "//79"}}) {
    EXPECT_EQ(base64_encode(plain), coded);
    EXPECT_EQ(base64_decode(coded), plain);
  }
  for (const char* bad : {"Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zm9v ", "Zm9-", "=Zg="}) {
    EXPECT_EQ(base64_decode(bad), std::nullopt) << bad;
  }
}

TEST(Http, Base64ForUrlsHasOneSpellingOnly) {
  for (const std::string text : {"", "a", "ab", "abc", "\xFB\xFF\xFE?"}) {
    EXPECT_EQ(base64url_decode(base64url_encode(text)), text);
  }
  EXPECT_EQ(base64url_encode("\xFB\xFF\xFE"), "-__-");
  // Padding, the other alphabet, bits behind the end, a lone character.
  for (const char* bad : {"Zg==", "+//+", "Zh", "Zm9=", "Z", "Z g", "Zg\n"}) {
    EXPECT_EQ(base64url_decode(bad), std::nullopt) << bad;
  }
}

TEST(Http, DigestsAreSha256) {
  // FIPS 180-2, appendix B.1
  EXPECT_EQ(base64_encode(sha256("abc")), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  EXPECT_NE(random_bytes(16), random_bytes(16));
  EXPECT_EQ(random_bytes(16).size(), 16U);
}

/// Gives what the parser left.
std::string feed_in_pieces(RequestParser& parser, const std::string& text, std::size_t step) {
  std::string buffer;
  for (std::size_t at = 0; at < text.size(); at += step) {
    buffer += text.substr(at, step);
    buffer.erase(0, parser.feed(buffer));
  }
  return buffer;
}

TEST(RequestParser, ChunksMayComeInAnyPieces) {
  for (const std::string body : {"", "2\r\nab\r\n", "1;x=y\r\na\r\n1\r\nb\r\n"}) {
    const std::string text = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" +
                             body + "0\r\nT: x\r\n\r\nNEXT";
    for (std::size_t step = 1; step <= text.size(); ++step) {
      RequestParser parser({});
      const std::string rest = feed_in_pieces(parser, text, step);
      ASSERT_EQ(parser.state(), RequestParser::State::kDone) << step;
      EXPECT_EQ(rest, "NEXT");
      EXPECT_EQ(parser.request().body, body.empty() ? "" : "ab");
    }
  }
}

TEST(RequestParser, GivesTheSameForEveryWayTheBytesCome) {
  const std::string text =
      "POST /a%2Fb?q=1#f HTTP/1.1\r\nHost: h\r\nX-A:  padded \r\nContent-Length: 4\r\n\r\nbodyNEXT";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    RequestParser parser({});
    const std::string rest = feed_in_pieces(parser, text, step);
    ASSERT_EQ(parser.state(), RequestParser::State::kDone) << step;
    EXPECT_EQ(rest, "NEXT");
    EXPECT_EQ(parser.request().method, "POST");
    EXPECT_EQ(parser.request().path, "/a/b");
    EXPECT_EQ(parser.request().query, "q=1");
    EXPECT_EQ(*find_header(parser.request().headers, "x-a"), "padded");
    EXPECT_EQ(parser.request().body, "body");
  }
}

std::string times(std::size_t count, std::string_view text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

/// Feeds an endless text in pieces until the parser has enough; says how much was held at most.
std::size_t most_held(RequestParser& parser, const std::string& text, std::size_t step) {
  std::string buffer;
  std::size_t most = 0;
  for (std::size_t at = 0; at < text.size() && parser.state() != RequestParser::State::kFailed;
       at += step) {
    buffer += text.substr(at, step);
    buffer.erase(0, parser.feed(buffer));
    most = std::max(most, buffer.size());
  }
  return most;
}

TEST(RequestParser, HeadersAndLinesBetweenChunksAreBoundedHoweverTheyCome) {
  constexpr RequestLimits kLimits{.max_header_bytes = 1000, .max_body_bytes = 1U << 20U};
  const std::string head = "GET / HTTP/1.1\r\nHost: h\r\n";
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  for (const std::string& text :
       {head + times(5000, "a:\r\n"), head + "a: " + times(5000, "bbbb"),
        "GET /" + times(5000, "bbbb"), chunked + "5;a=" + times(5000, "bbbb"),
        chunked + "0\r\n" + times(5000, "a:\r\n")}) {
    for (const std::size_t step : {1U, 5U, 97U, 999U, 4096U}) {
      RequestParser parser(kLimits);
      EXPECT_LE(most_held(parser, text, step), 1000 + step) << text.substr(0, 80);
      ASSERT_EQ(parser.state(), RequestParser::State::kFailed) << step << text.substr(0, 80);
      EXPECT_EQ(parser.failure_status(), 431) << parser.failure();
    }
  }
}

TEST(RequestParser, AHeaderMayBeAsLongAsTheLimit) {
  const std::string text = "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\nC: d\r\n\r\n";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    RequestParser parser({.max_header_bytes = text.size(), .max_body_bytes = 0});
    feed_in_pieces(parser, text, step);
    EXPECT_EQ(parser.state(), RequestParser::State::kDone) << step << parser.failure();
    RequestParser shorter({.max_header_bytes = text.size() - 1, .max_body_bytes = 0});
    feed_in_pieces(shorter, text, step);
    EXPECT_EQ(shorter.failure_status(), 431) << step;
  }
}

TEST(RequestParser, CountsFields) {
  for (const std::size_t count : {499U, 500U}) {
    RequestParser parser({});
    feed_in_pieces(parser, "GET / HTTP/1.1\r\nHost: h\r\n" + times(count, "a:\r\n") + "\r\n", 4096);
    EXPECT_EQ(parser.state(),
              count == 499 ? RequestParser::State::kDone : RequestParser::State::kFailed);
  }
}

TEST(RequestParser, TrailersAreNoHeaders) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
      "X-Grafana-User: admin\r\nHost: other\r\nExpect: 100-continue\r\n\r\n";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    RequestParser parser({});
    feed_in_pieces(parser, text, step);
    ASSERT_EQ(parser.state(), RequestParser::State::kDone) << parser.failure();
    EXPECT_EQ(parser.request().headers.size(), 2U);
    EXPECT_EQ(find_header(parser.request().headers, "X-Grafana-User"), nullptr);
    EXPECT_FALSE(parser.expects_continue());
  }
}

TEST(RequestParser, RefusesFoldedFieldsButNoBodiesThatLookLikeThem) {
  const std::string text = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n a\r\n b";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    RequestParser parser({});
    feed_in_pieces(parser, text, step);
    ASSERT_EQ(parser.state(), RequestParser::State::kDone) << step << parser.failure();
    EXPECT_EQ(parser.request().body, " a\r\n b");
    RequestParser folded({});
    feed_in_pieces(folded, "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", step);
    EXPECT_EQ(folded.state(), RequestParser::State::kFailed) << step;
  }
}

TEST(RequestParser, TakesTheTargetForms) {
  const auto path_of = [](const std::string& line) {
    RequestParser parser({});
    parser.feed(line + " HTTP/1.1\r\nHost: h\r\n\r\n");
    return parser.state() == RequestParser::State::kDone
               ? parser.request().path + "?" + parser.request().query
               : parser.failure();
  };
  EXPECT_EQ(path_of("GET http://h:80/x?y"), "/x?y");
  EXPECT_EQ(path_of("GET http://h"), "/?");
  EXPECT_EQ(path_of("GET https://h?y"), "bad request target");
  EXPECT_EQ(path_of("OPTIONS *"), "*?");
  EXPECT_EQ(path_of("GET *"), "bad request target");
  EXPECT_EQ(path_of("CONNECT h:443"), "bad request target");
  EXPECT_EQ(path_of("BREW /x??"), "/x??");
}

}  // namespace
}  // namespace ceems::net
