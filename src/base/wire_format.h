#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ceems {

// The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding/), for
// messages of which a program needs a few fields only.

/// One field of a message; its bytes are part of the message.
struct WireField {
  std::uint32_t number = 0;
  bool has_length = false;      ///< a text, bytes, an inner message or packed numbers
  std::string_view bytes = {};  ///< its content; of other kinds key and value as they stand

  /// The value of a number (varint); nothing of other kinds.
  [[nodiscard]] std::optional<std::uint64_t> varint() const;
};

/// The fields of a message, one after the other, without copies. Refuses groups, which nobody
/// writes any more, and numbers in more bytes than they need, which decoders may read differently.
class WireReader {
 public:
  /// `message` must outlive the fields.
  explicit WireReader(std::string_view message) : rest_(message) {}

  /// Nothing at the end, and where the message is broken.
  std::optional<WireField> next();
  /// False once something broken was met.
  [[nodiscard]] bool good() const { return good_; }

 private:
  std::optional<WireField> broken();

  std::string_view rest_;
  bool good_ = true;
};

/// So that WireReader reads the same field.
void append_wire_field(std::string& out, const WireField& field);

}  // namespace ceems
