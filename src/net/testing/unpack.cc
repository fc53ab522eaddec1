#include "net/testing/unpack.h"

#include <zlib.h>
#include <zstd.h>

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

}  // namespace

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
  return left == 0 ? out : "(broken)";
}

}  // namespace ceems::net
