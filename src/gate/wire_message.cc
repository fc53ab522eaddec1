#include "gate/wire_message.h"

#include <optional>
#include <utility>

namespace ceems::gate {
namespace {

constexpr unsigned kTypeBits = 3;
constexpr std::uint64_t kTypeMask = 7;
constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kFixed64 = 1;
constexpr std::uint64_t kLength = 2;
constexpr std::uint64_t kFixed32 = 5;
constexpr std::uint64_t kLargestNumber = (std::uint64_t{1} << 29U) - 1;

/// Takes a number off the front; nothing where it is cut, too big, or longer than it needs to be.
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
    out += static_cast<char>(static_cast<unsigned char>(value | 0x80U));
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

/// Bytes of a value without length; nothing where the message ends before.
std::optional<std::size_t> plain_size(std::uint64_t type, std::string_view rest) {
  std::size_t size = 0;
  if (type == kVarint) {
    std::string_view left = rest;
    if (!take_varint(left)) {
      return std::nullopt;
    }
    size = rest.size() - left.size();
  } else if (type == kFixed64 || type == kFixed32) {
    size = type == kFixed64 ? 8 : 4;
  } else {
    return std::nullopt;
  }
  return size <= rest.size() ? std::optional(size) : std::nullopt;
}

}  // namespace

Result<std::vector<WireField>> parse_wire_message(std::string_view message) {
  std::vector<WireField> fields;
  while (!message.empty()) {
    const std::string_view start = message;
    const auto key = take_varint(message);
    if (!key || (*key >> kTypeBits) == 0 || (*key >> kTypeBits) > kLargestNumber) {
      return fail(ErrorCode::kParse, "a message with a broken field");
    }
    WireField field;
    field.number = static_cast<std::uint32_t>(*key >> kTypeBits);
    const std::uint64_t type = *key & kTypeMask;
    if (type == kLength) {
      const auto size = take_varint(message);
      if (!size || *size > message.size()) {
        return fail(ErrorCode::kParse, "a message with a field that ends too early");
      }
      field.has_length = true;
      field.bytes = message.substr(0, *size);
      message.remove_prefix(*size);
    } else {
      const auto size = plain_size(type, message);
      if (!size) {
        return fail(ErrorCode::kParse, "a message with a broken field");
      }
      message.remove_prefix(*size);
      field.bytes = start.substr(0, start.size() - message.size());
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

std::string write_wire_message(const std::vector<WireField>& fields) {
  std::string out;
  for (const WireField& field : fields) {
    if (field.has_length) {
      append_varint(out, (std::uint64_t{field.number} << kTypeBits) | kLength);
      append_varint(out, field.bytes.size());
    }
    out += field.bytes;
  }
  return out;
}

}  // namespace ceems::gate
