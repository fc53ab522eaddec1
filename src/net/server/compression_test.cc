#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "net/server/server.h"
#include "net/testing/test_client.h"
#include "net/testing/unpack.h"

namespace ceems::net {
namespace {

std::unique_ptr<Server> compressing(int level) {
  ServerOptions options;
  options.listen_addresses = {"127.0.0.1:0"};
  options.gzip_level = level;
  auto server = Server::create(options, [](const Request& request, Response& response) {
    const std::string line(1000, 'x');
    response.set_header("Content-Type", request.path == "/png" ? "image/png" : "text/plain");
    if (request.path == "/done") {
      response.set_header("Content-Encoding", "br");
    }
    if (request.path == "/stream") {
      response.next_chunk = [line, left = 500](std::string& out) mutable {
        out += line;
        return --left > 0;
      };
    } else if (request.path == "/short") {
      response.body = line.substr(0, 511);
    } else if (request.path != "/empty") {
      response.body = line;
    }
  });
  (*server)->start();
  return *std::move(server);
}

TEST(Compression, TheServerCompressesWhatIsAskedForAndWorthIt) {
  const auto server = compressing(5);
  const std::string address = server->addresses()[0];
  const Headers gzip = {{"Accept-Encoding", "gzip"}};
  const RawAnswer packed = raw_get(address, "/", gzip);
  EXPECT_EQ(packed.header("Content-Encoding"), "gzip");
  EXPECT_EQ(packed.header("Vary"), "Accept-Encoding");
  EXPECT_EQ(unzip(packed.body), std::string(1000, 'x'));
  EXPECT_EQ(
      unzstd(
          raw_get(address, "/", {{"Accept-Encoding", "gzip"}, {"Accept-Encoding", "zstd"}}).body),
      std::string(1000, 'x'));
  const RawAnswer plain = raw_get(address, "/");
  EXPECT_EQ(plain.header("Content-Encoding"), "");
  EXPECT_EQ(plain.header("Vary"), "Accept-Encoding");
  EXPECT_EQ(plain.body.size(), 1000U);
  EXPECT_EQ(raw_get(address, "/png", gzip).body.size(), 1000U);
  EXPECT_EQ(raw_get(address, "/done", gzip).header("Content-Encoding"), "br");
  EXPECT_EQ(raw_get(address, "/done", gzip).body.size(), 1000U);
  EXPECT_EQ(raw_get(address, "/empty", gzip).header("Content-Encoding"), "");
  EXPECT_EQ(raw_get(address, "/short", gzip).header("Content-Encoding"), "");
  EXPECT_EQ(raw_get(address, "/short", gzip).body.size(), 511U);
  EXPECT_EQ(raw_get(compressing(0)->addresses()[0], "/", gzip).header("Content-Encoding"), "");
}

TEST(Compression, TheServerCompressesAStreamPieceByPiece) {
  const auto server = compressing(5);
  for (const auto& [name, unpack] :
       {std::pair<std::string, std::string (*)(std::string_view)>{"gzip", unzip},
        {"zstd", unzstd},
        {"deflate", undeflate}}) {
    const RawAnswer answer =
        raw_get(server->addresses()[0], "/stream", {{"Accept-Encoding", name}});
    EXPECT_EQ(answer.header("Content-Encoding"), name);
    EXPECT_EQ(answer.header("Transfer-Encoding"), "chunked");
    ASSERT_TRUE(answer.complete);
    EXPECT_EQ(unpack(answer.body), std::string(500000, 'x'));
    EXPECT_LT(answer.body.size(), 20000U);
  }
}

}  // namespace
}  // namespace ceems::net
