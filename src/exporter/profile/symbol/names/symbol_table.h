#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// The functions of one binary by address, in little memory. Immutable, so safe for concurrent use.
class SymbolTable {
 public:
  /// The name of the function at an offset from the binary's lowest PT_LOAD address, as the binary
  /// spells it (mangled); nothing between functions.
  [[nodiscard]] std::optional<std::string_view> find(std::uint32_t pc) const;

  [[nodiscard]] std::size_t size() const { return symbols_.size(); }
  /// How many functions were left out, because there are too many or their names are too long.
  [[nodiscard]] std::size_t dropped() const { return dropped_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  friend class SymbolTableBuilder;
  struct Symbol {
    std::uint32_t start = 0;
    std::uint32_t size = 0;  ///< 0: up to the next one
    std::uint32_t name = 0;  ///< offset in names_
  };
  [[nodiscard]] bool covers(std::size_t index, std::uint32_t pc) const;

  std::vector<Symbol> symbols_;  ///< by start, each start once
  std::string names_;            ///< with a NUL behind each
  std::size_t dropped_ = 0;
};

struct SymbolLimits {
  std::size_t symbols = 500'000;
  std::size_t name_bytes = 16U << 20U;
};

/// Collects functions from several sources. The first source that names an address wins.
class SymbolTableBuilder {
 public:
  explicit SymbolTableBuilder(const SymbolLimits& limits = {}) : limits_(limits) {}

  struct Function {
    std::uint32_t start = 0;
    std::uint32_t size = 0;
    std::uint64_t name = 0;  ///< offset in the file's table of names
    bool is_local = false;   ///< other names of the same function are better
  };
  /// Adds the functions of one source, reading their names from `names`.
  void add(std::vector<Function> functions, FileWindow& names);
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  /// How many functions a source may add.
  [[nodiscard]] std::size_t room() const { return limits_.symbols - entries_.size(); }
  void drop(std::size_t count) { dropped_ += count; }
  SymbolTable finish();

 private:
  struct Entry {
    std::uint32_t start = 0;
    std::uint32_t size = 0;
    std::uint32_t name = 0;
    std::uint16_t length = 0;
    std::uint16_t rank = 0;  ///< the lowest is the best
  };

  SymbolLimits limits_;
  std::vector<Entry> entries_;
  std::string names_;
  std::uint16_t sources_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace ceems::exporter::profile
