#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ceems {

// The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding/), for
// programs that need only a few fields of a message.

/// One field of a message. Its bytes point into the message.
struct WireField {
  std::uint32_t number = 0;
  bool has_length = false;      ///< text, bytes, an inner message or packed numbers
  std::string_view bytes = {};  ///< with a length the content; otherwise key and value as encoded

  /// The value of a varint field; nothing for other types.
  [[nodiscard]] std::optional<std::uint64_t> varint() const;
};

/// Reads the fields of a message one after the other, without copies. Refuses groups, which are
/// obsolete, and numbers in more bytes than necessary, which decoders may read differently.
class WireReader {
 public:
  /// `message` must outlive the fields.
  explicit WireReader(std::string_view message) : rest_(message) {}

  /// The next field. Nothing at the end of the message, or if the message is malformed.
  std::optional<WireField> next();
  /// False after a malformed field.
  [[nodiscard]] bool good() const { return good_; }

 private:
  std::optional<WireField> broken();

  std::string_view rest_;
  bool good_ = true;
};

/// Appends `field` in the form that WireReader reads back.
void append_wire_field(std::string& out, const WireField& field);

}  // namespace ceems
