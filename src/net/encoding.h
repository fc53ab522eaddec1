#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::net {

enum class Encoding { kIdentity, kGzip, kZstd, kDeflate };

/// "identity", "gzip", "zstd", "deflate".
std::string_view to_string(Encoding encoding);

/// Chooses the content coding of a response from the text of Accept-Encoding (RFC 9110 §12.5.3).
/// The highest weight wins, and q=0 rejects a coding. In a tie, identity wins if it is named or
/// covered by "*", then zstd, then gzip.
Encoding negotiate_encoding(std::string_view accept_encoding);

/// True for media types that are worth compressing: text/*, JSON, JavaScript, XML, SVG,
/// OpenMetrics.
bool compressible_type(std::string_view content_type);

/// A streaming compressor. kIdentity passes the text through. kDeflate produces the zlib format
/// (RFC 1950), as RFC 9110 §8.4.1.2 requires. Not thread-safe.
class Compressor {
 public:
  /// `level` is the level of gzip and deflate, 1 to 9. zstd uses a level of similar cost.
  Compressor(Encoding encoding, int level);
  ~Compressor();
  Compressor(Compressor&&) noexcept;
  Compressor& operator=(Compressor&&) noexcept;

  /// Compresses `text` and appends the output to `out`. `last` ends the stream; no call may follow.
  /// Returns kInternal when the library fails, for example for lack of memory.
  Result<> add(std::string_view text, bool last, std::string& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::net
