#include "net/encoding.h"

#include <zlib.h>
#include <zstd.h>

#include <gtest/gtest.h>

#include "net/server.h"
#include "net/test_client.h"

namespace ceems::net {
namespace {

std::string inflated(std::string_view packed, int window) {
  z_stream stream{};
  inflateInit2(&stream, window);
  std::string input(packed);
  stream.next_in = reinterpret_cast<unsigned char*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  std::string out;
  int status = Z_OK;
  while (status == Z_OK) {
    std::string piece(65536, '\0');
    stream.next_out = reinterpret_cast<unsigned char*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(piece, 0, piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END ? out : "(broken)";
}

std::string unzip(std::string_view packed) {
  return inflated(packed, 15 + 16);
}

std::string undeflate(std::string_view packed) {
  return inflated(packed, 15);
}

std::string unzstd(std::string_view packed) {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  ZSTD_inBuffer input{packed.data(), packed.size(), 0};
  std::string out;
  std::size_t left = 1;
  while (left != 0 && ZSTD_isError(left) == 0) {
    std::string piece(65536, '\0');
    ZSTD_outBuffer output{piece.data(), piece.size(), 0};
    left = ZSTD_decompressStream(context, &output, &input);
    out.append(piece, 0, output.pos);
    if (output.pos == 0 && input.pos == input.size && left != 0) {
      break;
    }
  }
  ZSTD_freeDCtx(context);
  return left == 0 ? out : "(broken zstd)";
}

struct Asked {
  std::string accept;
  Encoding expected;
};
class Negotiation : public ::testing::TestWithParam<Asked> {};

TEST_P(Negotiation, PicksTheCoding) {
  EXPECT_EQ(negotiate_encoding(GetParam().accept), GetParam().expected) << GetParam().accept;
}

INSTANTIATE_TEST_SUITE_P(Encoding,
                         Negotiation,
                         ::testing::Values(Asked{"", Encoding::kIdentity},
                                           Asked{"gzip", Encoding::kGzip},
                                           Asked{"GZIP", Encoding::kGzip},
                                           Asked{"x-gzip", Encoding::kGzip},
                                           Asked{"gzip, identity", Encoding::kIdentity},
                                           Asked{"identity, gzip", Encoding::kIdentity},
                                           Asked{"*", Encoding::kIdentity},
                                           Asked{"gzip;q=0", Encoding::kIdentity},
                                           Asked{"gzip;q=0, *", Encoding::kIdentity},
                                           Asked{"identity;q=0, *", Encoding::kZstd},
                                           Asked{"gzip;q=0.5", Encoding::kGzip},
                                           Asked{"gzip;q=0.5, identity;q=0.4", Encoding::kGzip},
                                           Asked{"gzip;q=0.3 , identity;q=0.4",
                                                 Encoding::kIdentity},
                                           Asked{"gzip, *;q=0.1", Encoding::kGzip},
                                           Asked{"gzip, deflate, br", Encoding::kGzip},
                                           Asked{"gzip, deflate, br, zstd", Encoding::kZstd},
                                           Asked{"zstd;q=0.5, gzip", Encoding::kGzip},
                                           Asked{"gzip;q=nonsense", Encoding::kIdentity},
                                           Asked{"gzip;q=7", Encoding::kIdentity},
                                           Asked{",,;;gzip;;q=1,", Encoding::kIdentity},
                                           Asked{"deflate, gzip", Encoding::kGzip},
                                           Asked{"deflate, gzip;q=0.9", Encoding::kDeflate},
                                           Asked{"deflate;q=0", Encoding::kIdentity},
                                           Asked{"deflate", Encoding::kDeflate}));

TEST(Encoding, KnowsTypesWorthCompressing) {
  for (const char* type : {"text/plain; version=0.0.4", "application/json", "Text/HTML",
                           "image/svg+xml", "application/openmetrics-text; version=1.0.0"}) {
    EXPECT_TRUE(compressible_type(type)) << type;
  }
  for (const char* type : {"image/png", "application/octet-stream", "font/woff2", ""}) {
    EXPECT_FALSE(compressible_type(type)) << type;
  }
}

TEST(Encoding, PiecesUnpackToTheWhole) {
  std::string text;
  for (int i = 0; i < 50000; ++i) {
    text += "metric{i=\"" + std::to_string(i) + "\"} " + std::to_string(i * 7919) + "\n";
  }
  for (const Encoding encoding :
       {Encoding::kIdentity, Encoding::kGzip, Encoding::kZstd, Encoding::kDeflate}) {
    Compressor compressor(encoding, 5);
    std::string packed;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view piece = rest.substr(0, 12345);
      rest.remove_prefix(piece.size());
      ASSERT_TRUE(compressor.add(piece, rest.empty(), packed));
    }
    const std::string back = encoding == Encoding::kGzip      ? unzip(packed)
                             : encoding == Encoding::kDeflate ? undeflate(packed)
                             : encoding == Encoding::kZstd    ? unzstd(packed)
                                                              : packed;
    EXPECT_EQ(back, text);
    if (encoding != Encoding::kIdentity) {
      EXPECT_LT(packed.size(), text.size() / 3);
    }
  }
}

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
    } else if (request.path != "/empty") {
      response.body = line;
    }
  });
  (*server)->start();
  return *std::move(server);
}

TEST(Encoding, TheServerCompressesWhatIsAskedForAndWorthIt) {
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
  EXPECT_EQ(raw_get(compressing(0)->addresses()[0], "/", gzip).header("Content-Encoding"), "");
}

TEST(Encoding, TheServerCompressesAStreamPieceByPiece) {
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
