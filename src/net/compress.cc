#include "net/compress.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/strings.h"

namespace ceems::net {
namespace {

/// Weight of one element's parameters (RFC 9110 §12.4.2); 1 where none is given, 0 for a broken
/// one.
double weight(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view part = trim(take_until(parameters, ';'));
    if (part.starts_with("q=") || part.starts_with("Q=")) {
      return parse_double(trim(part.substr(2))).value_or(0);
    }
  }
  return 1;
}

}  // namespace

Encoding choose_encoding(std::string_view accept_encoding) {
  constexpr double kUnset = -1;
  double identity = kUnset;
  double gzip = kUnset;
  double zstd = kUnset;
  double any = kUnset;
  while (!accept_encoding.empty()) {
    std::string_view element = take_until(accept_encoding, ',');
    const std::string name = to_lower(trim(take_until(element, ';')));
    const double q = weight(element);
    if (name == "identity") {
      identity = q;
    } else if (name == "gzip" || name == "x-gzip") {
      gzip = q;
    } else if (name == "zstd") {
      zstd = q;
    } else if (name == "*") {
      any = q;
    }
  }
  // Identity is acceptable unless refused; unnamed it ranks below what was asked for by name.
  const bool named = gzip > 0 || zstd > 0;
  if (identity == kUnset) {
    identity = any != kUnset ? any : (named ? 0 : 1);
  }
  if (zstd > identity && zstd >= gzip) {
    return Encoding::kZstd;
  }
  return gzip > identity ? Encoding::kGzip : Encoding::kIdentity;
}

std::string_view encoding_name(Encoding encoding) {
  switch (encoding) {
    case Encoding::kGzip:
      return "gzip";
    case Encoding::kZstd:
      return "zstd";
    case Encoding::kIdentity:
      break;
  }
  return "";
}

struct Compressor::Impl {
  Encoding encoding = Encoding::kIdentity;
  z_stream gzip{};
  ZSTD_CStream* zstd = nullptr;
};

Compressor::Compressor(Encoding encoding, int level) : impl_(std::make_unique<Impl>()) {
  impl_->encoding = encoding;
  if (encoding == Encoding::kGzip) {
    // 15 window bits, +16: gzip header (zlib.h). Memory level 8 is its default.
    CEEMS_CHECK(::deflateInit2(&impl_->gzip, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) ==
                Z_OK);
  } else if (encoding == Encoding::kZstd) {
    impl_->zstd = ::ZSTD_createCStream();
    ::ZSTD_CCtx_setParameter(impl_->zstd, ::ZSTD_c_compressionLevel, std::min(level, 3));
  }
}

Compressor::~Compressor() {
  if (impl_->encoding == Encoding::kGzip) {
    ::deflateEnd(&impl_->gzip);
  }
  ::ZSTD_freeCStream(impl_->zstd);
}

void Compressor::add(std::string_view data, bool last, std::string& out) {
  std::array<char, 16384> chunk{};
  if (impl_->encoding == Encoding::kIdentity) {
    out.append(data);
  } else if (impl_->encoding == Encoding::kGzip) {
    z_stream& stream = impl_->gzip;
    // zlib does not write through next_in; its type only lacks the const.
    stream.next_in = reinterpret_cast<Bytef*>(
        const_cast<char*>(data.data()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    stream.avail_in = static_cast<uInt>(data.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
      stream.avail_out = chunk.size();
      ::deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
      out.append(chunk.data(), chunk.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  } else {
    ZSTD_inBuffer input{data.data(), data.size(), 0};
    std::size_t left = 0;
    do {
      ZSTD_outBuffer output{chunk.data(), chunk.size(), 0};
      left = ::ZSTD_compressStream2(impl_->zstd, &output, &input,
                                    last ? ::ZSTD_e_end : ::ZSTD_e_continue);
      CEEMS_CHECK(::ZSTD_isError(left) == 0);
      out.append(chunk.data(), output.pos);
    } while (last ? left != 0 : input.pos < input.size);
  }
}

}  // namespace ceems::net
