#include "net/encoding.h"

#include <gtest/gtest.h>

#include "net/testing/unpack.h"

namespace ceems::net {
namespace {

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

}  // namespace
}  // namespace ceems::net
