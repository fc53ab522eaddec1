#include "net/relay/answer_parser.h"

#include <gtest/gtest.h>

namespace ceems::net {
namespace {

using State = AnswerParser::State;

/// Feeds the text piece by piece, as a socket would.
struct Fed {
  explicit Fed(std::string_view text, std::size_t piece = 1, bool head = false) : parser(head) {
    std::string buffer;
    for (std::size_t i = 0; i < text.size(); i += piece) {
      buffer += text.substr(i, piece);
      buffer.erase(0, parser.feed(buffer, body));
    }
    rest = buffer;
  }
  AnswerParser parser;
  std::string body;
  std::string rest;
};

TEST(AnswerParser, ReadsABodyWithLength) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
    Fed fed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello", piece);
    EXPECT_EQ(fed.parser.state(), State::kDone);
    EXPECT_EQ(fed.parser.status(), 200);
    EXPECT_EQ(fed.body, "hello");
    EXPECT_EQ(fed.parser.length(), 5U);
    EXPECT_EQ(*find_header(fed.parser.headers(), "x-a"), "b");
    EXPECT_TRUE(fed.parser.keep_alive());
  }
}

TEST(AnswerParser, TheLengthIsKnownWithTheHead) {
  const Fed fed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(fed.parser.state(), State::kBody);
  EXPECT_EQ(fed.parser.length(), 5U);
  const Fed unchanged("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(unchanged.parser.state(), State::kDone);
  EXPECT_EQ(unchanged.parser.length(), std::nullopt);
}

TEST(AnswerParser, JoinsChunks) {
  for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, std::size_t{1000}}) {
    Fed fed(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n"
        "T: v\r\n\r\n",
        piece);
    EXPECT_EQ(fed.parser.state(), State::kDone) << fed.parser.failure();
    EXPECT_EQ(fed.body, "abcde");
    EXPECT_EQ(fed.parser.length(), std::nullopt);
    EXPECT_TRUE(fed.parser.keep_alive());
  }
}

TEST(AnswerParser, TrailersAreNoHeadersAndBounded) {
  const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n";
  const Fed good(head + "0\r\nX-A: b\r\n\r\n");
  EXPECT_EQ(good.parser.state(), State::kDone);
  EXPECT_EQ(good.parser.headers().size(), 1U);
  const Fed endless(head + "0\r\nX-A: " + std::string(200'000, 'b'), 4096);
  EXPECT_EQ(endless.parser.state(), State::kFailed);
  const Fed line(head + "1;" + std::string(200'000, 'b'), 4096);
  EXPECT_EQ(line.parser.state(), State::kFailed);
}

TEST(AnswerParser, ALastChunkMayComeByteByByte) {
  for (const char* end : {"0\r\n\r\n", "0\r\nT: x\r\n\r\n", "000;x\r\n\r\n"}) {
    const Fed fed(std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") + end, 1);
    EXPECT_EQ(fed.parser.state(), State::kDone) << end;
    EXPECT_EQ(fed.body, "");
  }
}

TEST(AnswerParser, ABodyWithoutLengthEndsWithTheConnection) {
  Fed fed("HTTP/1.0 200 OK\r\n\r\nabc");
  EXPECT_EQ(fed.parser.state(), State::kBody);
  fed.parser.end();
  EXPECT_EQ(fed.parser.state(), State::kDone);
  EXPECT_EQ(fed.body, "abc");
  EXPECT_FALSE(fed.parser.keep_alive());
}

TEST(AnswerParser, AnEndTooEarlyIsAFailure) {
  for (const char* text :
       {"", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
    Fed fed(text);
    fed.parser.end();
    EXPECT_EQ(fed.parser.state(), State::kFailed) << text;
  }
}

TEST(AnswerParser, GarbageIsAFailure) {
  for (const char* text :
       {"<html>\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "\x16\x03\x01\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 000 None\r\n\r\n"}) {
    EXPECT_EQ(Fed(text, 1000).parser.state(), State::kFailed) << text;
  }
  EXPECT_EQ(Fed("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'), 4096).parser.state(),
            State::kFailed);
}

TEST(AnswerParser, InterimAnswersAreLeftOut) {
  Fed fed(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
      "HTTP/1.1 204 No Content\r\n\r\n",
      3);
  EXPECT_EQ(fed.parser.state(), State::kDone);
  EXPECT_EQ(fed.parser.status(), 204);
  EXPECT_EQ(fed.body, "");
}

TEST(AnswerParser, AnswersToHeadHaveNoBody) {
  Fed fed("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", 9, true);
  EXPECT_EQ(fed.parser.state(), State::kDone);
  EXPECT_EQ(fed.parser.length(), 500U);
  EXPECT_TRUE(fed.parser.keep_alive());
}

TEST(AnswerParser, ConnectionCloseIsHeeded) {
  EXPECT_FALSE(
      Fed("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").parser.keep_alive());
}

TEST(AnswerParser, WhatComesBehindTheAnswerIsLeft) {
  Fed fed("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", 1000);
  EXPECT_EQ(fed.body, "a");
  EXPECT_EQ(fed.rest, "b");
}

}  // namespace
}  // namespace ceems::net
