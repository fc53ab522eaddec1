#include "net/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace ceems::net {
namespace {

struct Inflater {
  z_stream stream{};
  bool ready = false;

  Inflater() {
    constexpr int kOnlyGzip = 16;
    ready = inflateInit2(&stream, MAX_WBITS + kOnlyGzip) == Z_OK;
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready) {
      inflateEnd(&stream);
    }
  }
};

}  // namespace

Result<std::string> gunzip(std::string_view packed, std::size_t most) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  if (!inflater.ready) {
    return fail(ErrorCode::kInternal, "no memory for gzip");
  }
  std::string copy(packed);  // zlib's interface is not const
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(std::min<std::size_t>(copy.size(), UINT32_MAX));
  std::string out;
  std::array<char, 16384> piece{};
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
    if (out.size() > most) {
      return fail(ErrorCode::kInvalidArgument, "over {} bytes after decompression", most);
    }
  }
  if (status != Z_STREAM_END || stream.avail_in != 0) {
    return fail(ErrorCode::kParse, "no gzip, or not all of it");
  }
  return out;
}

}  // namespace ceems::net
