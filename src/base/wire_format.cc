#include "base/wire_format.h"

namespace ceems {
namespace {

constexpr unsigned kTypeBits = 3;
constexpr std::uint64_t kTypeMask = 7;
constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kFixed64 = 1;
constexpr std::uint64_t kLength = 2;
constexpr std::uint64_t kFixed32 = 5;
constexpr std::uint64_t kMaxFieldNumber = (std::uint64_t{1} << 29U) - 1;

/// Takes a varint off the front. Nothing if it is truncated, too big, or longer than necessary.
std::optional<std::uint64_t> take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    if (shift == 63 && byte > 1) {
      return std::nullopt;
    }
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if ((byte & 0x80U) == 0) {
      return byte == 0 && shift > 0 ? std::nullopt : std::optional(value);
    }
  }
  return std::nullopt;
}

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(static_cast<unsigned char>((value & 0x7FU) | 0x80U));
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

/// Takes a value of a type without length off the front. False if the message ends too early or the
/// type is unknown.
bool take_plain(std::uint64_t type, std::string_view& rest) {
  if (type == kVarint) {
    return take_varint(rest).has_value();
  }
  if (type != kFixed64 && type != kFixed32) {
    return false;
  }
  const std::size_t size = type == kFixed64 ? 8 : 4;
  if (rest.size() < size) {
    return false;
  }
  rest.remove_prefix(size);
  return true;
}

}  // namespace

std::optional<std::uint64_t> WireField::varint() const {
  std::string_view rest = bytes;
  const auto key = has_length ? std::nullopt : take_varint(rest);
  return key && (*key & kTypeMask) == kVarint ? take_varint(rest) : std::nullopt;
}

std::optional<WireField> WireReader::broken() {
  good_ = false;
  rest_ = {};
  return std::nullopt;
}

std::optional<WireField> WireReader::next() {
  if (rest_.empty()) {
    return std::nullopt;
  }
  const std::string_view start = rest_;
  const auto key = take_varint(rest_);
  if (!key || (*key >> kTypeBits) == 0 || (*key >> kTypeBits) > kMaxFieldNumber) {
    return broken();
  }
  WireField field{.number = static_cast<std::uint32_t>(*key >> kTypeBits)};
  if ((*key & kTypeMask) != kLength) {
    if (!take_plain(*key & kTypeMask, rest_)) {
      return broken();
    }
    field.bytes = start.substr(0, start.size() - rest_.size());
    return field;
  }
  const auto size = take_varint(rest_);
  if (!size || *size > rest_.size()) {
    return broken();
  }
  field.has_length = true;
  field.bytes = rest_.substr(0, *size);
  rest_.remove_prefix(*size);
  return field;
}

void append_wire_field(std::string& out, const WireField& field) {
  if (field.has_length) {
    append_varint(out, (std::uint64_t{field.number} << kTypeBits) | kLength);
    append_varint(out, field.bytes.size());
  }
  out += field.bytes;
}

}  // namespace ceems
