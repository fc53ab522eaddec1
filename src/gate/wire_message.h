#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::gate {

/// One field of a message in the wire format of protocol buffers
/// (https://protobuf.dev/programming-guides/encoding/).
struct WireField {
  std::uint32_t number = 0;
  bool has_length = false;  ///< a text, bytes or an inner message
  std::string bytes;        ///< its content; of other kinds key and value as they stood
};

/// The fields in their order. kParse for what is no message, for groups, and for numbers in more
/// bytes than they need (which decoders may read differently).
Result<std::vector<WireField>> parse_wire_message(std::string_view message);
std::string write_wire_message(const std::vector<WireField>& fields);

}  // namespace ceems::gate
