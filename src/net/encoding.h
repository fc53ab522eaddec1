#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::net {

enum class Encoding { kIdentity, kGzip, kZstd, kDeflate };

/// "identity", "gzip", "zstd", "deflate".
std::string_view to_string(Encoding encoding);

/// Picks the coding of an answer from the text of Accept-Encoding (RFC 9110 §12.5.3): the highest
/// weight wins, q=0 refuses; identity wins a tie when it is named or covered by "*", then zstd,
/// then gzip.
Encoding negotiate_encoding(std::string_view accept_encoding);

/// True for types worth compressing: text/*, JSON, JavaScript, XML, SVG, OpenMetrics.
bool compressible_type(std::string_view content_type);

/// Streaming compressor; kIdentity passes through, kDeflate is the zlib format (RFC 1950) as RFC
/// 9110 §8.4.1.2 has it. Not thread-safe.
class Compressor {
 public:
  /// `level` is that of gzip and deflate, 1 to 9; zstd uses its level of like cost.
  Compressor(Encoding encoding, int level);
  ~Compressor();
  Compressor(Compressor&&) noexcept;
  Compressor& operator=(Compressor&&) noexcept;

  /// Appends what comes out to `out`; `last` ends the stream, no call follows it. kInternal when
  /// the library fails (memory).
  Result<> add(std::string_view text, bool last, std::string& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::net
