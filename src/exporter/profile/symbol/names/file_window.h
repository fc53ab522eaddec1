#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "exporter/profile/symbol/binary_file.h"

namespace ceems::exporter::profile {

/// A part of a file, of which a piece is in memory at a time, to be read in rising order. A hostile
/// file could make its reader jump back and forth, so reading stops after four times the size of
/// the part.
class FileWindow {
 public:
  /// @param offset, size  the part; what lies beyond the end of the file cannot be read
  FileWindow(const BinaryFile& file, std::uint64_t offset, std::uint64_t size)
      : file_(file),
        start_(std::min(offset, file.size())),
        size_(std::min({size, file.size() - start_, kMaxSize})) {}

  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Up to `count` bytes (at most kPiece) at an offset of the part, fewer at its end. Valid until
  /// the next call.
  std::string_view at(std::uint64_t offset, std::uint64_t count) {
    if (offset >= size_) {
      return {};
    }
    count = std::min({count, size_ - offset, kPiece});
    if (offset < loaded_at_ || offset + count > loaded_at_ + piece_.size()) {
      if (++loads_ > kMaxLoads + 4 * (size_ / kPiece)) {
        return {};
      }
      auto piece = file_.read(start_ + offset, std::min(kPiece, size_ - offset));
      loaded_at_ = offset;
      piece_ = piece ? std::move(*piece) : std::string{};
      count = std::min<std::uint64_t>(count, piece_.size());
    }
    return std::string_view(piece_).substr(static_cast<std::size_t>(offset - loaded_at_),
                                           static_cast<std::size_t>(count));
  }

  static constexpr std::uint64_t kPiece = 256U << 10U;
  static constexpr std::uint64_t kMaxSize = 256U << 20U;  ///< of a part

 private:
  static constexpr std::uint64_t kMaxLoads = 16;  ///< of a small part

  const BinaryFile& file_;
  std::uint64_t start_;
  std::uint64_t size_;
  std::uint64_t loaded_at_ = 0;
  std::uint64_t loads_ = 0;
  std::string piece_;
};

}  // namespace ceems::exporter::profile
