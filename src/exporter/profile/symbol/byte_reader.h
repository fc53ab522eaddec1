#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ceems::exporter::profile {

/// Reads little-endian numbers of untrusted bytes, one after the other. What lies behind the end
/// reads as zero, and good() is false from then on, so that callers check once and not at each
/// step.
class ByteReader {
 public:
  /// `bytes` must outlive the reader and the texts that it returns.
  explicit ByteReader(std::string_view bytes, std::size_t offset = 0)
      : bytes_(bytes), offset_(offset), good_(offset <= bytes.size()) {}

  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::size_t offset() const { return offset_; }
  [[nodiscard]] bool at_end() const { return !good_ || offset_ >= bytes_.size(); }
  [[nodiscard]] std::size_t left() const { return at_end() ? 0 : bytes_.size() - offset_; }

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }

  /// LEB128 numbers of DWARF. Bits beyond the 64th are dropped.
  std::uint64_t uleb() { return leb().value; }
  std::int64_t sleb() {
    const Leb read = leb();
    std::uint64_t value = read.value;
    if (read.bits < 64 && (read.last & 0x40U) != 0) {
      value |= ~std::uint64_t{0} << read.bits;
    }
    return static_cast<std::int64_t>(value);
  }

  void skip(std::uint64_t count) {
    if (count > left()) {
      good_ = good_ && count == 0;
      return;
    }
    offset_ += static_cast<std::size_t>(count);
  }

  std::string_view take(std::uint64_t count) {
    const std::size_t start = offset_;
    skip(count);
    return good_ ? bytes_.substr(start, static_cast<std::size_t>(count)) : std::string_view{};
  }

  /// A text with a NUL at its end.
  std::string_view text() {
    const std::size_t end = good_ ? bytes_.find('\0', offset_) : std::string_view::npos;
    if (end == std::string_view::npos) {
      good_ = false;
      return {};
    }
    const std::string_view found = bytes_.substr(offset_, end - offset_);
    offset_ = end + 1;
    return found;
  }

 private:
  struct Leb {
    std::uint64_t value = 0;
    unsigned bits = 0;
    std::uint8_t last = 0;
  };

  template <class Number>
  Number number() {
    Number value{};
    if (left() < sizeof(Number)) {
      good_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data() + offset_, sizeof(Number));
    offset_ += sizeof(Number);
    return value;
  }

  Leb leb() {
    Leb read;
    do {
      read.last = u8();
      if (read.bits < 64) {
        read.value |= std::uint64_t{read.last & 0x7FU} << read.bits;
      }
      read.bits += read.bits < 128 ? 7 : 0;
    } while (good_ && (read.last & 0x80U) != 0);
    return read;
  }

  std::string_view bytes_;
  std::size_t offset_;
  bool good_;
};

}  // namespace ceems::exporter::profile
