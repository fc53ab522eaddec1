#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace ceems::net {

enum class Encoding { kIdentity, kGzip, kZstd };

/// What Accept-Encoding asks for: the highest weight wins, identity wins a tie with the others,
/// zstd wins one with gzip; q=0 refuses. "*" stands for whatever is not named, at identity's
/// advantage.
Encoding choose_encoding(std::string_view accept_encoding);

/// Value of Content-Encoding; empty for identity.
std::string_view encoding_name(Encoding encoding);

/// Streaming compressor. Not thread-safe.
class Compressor {
 public:
  /// `level` 1-9.
  Compressor(Encoding encoding, int level);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  /// Appends compressed bytes to `out`; `last` ends the stream.
  void add(std::string_view data, bool last, std::string& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::net
