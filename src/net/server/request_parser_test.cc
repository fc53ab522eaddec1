#include "net/server/request_parser.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::net {
namespace {

/// Returns the bytes that the parser left.
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

/// Feeds a text in pieces until it ends or the parser rejects it. Returns the largest number of
/// bytes that were buffered.
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
