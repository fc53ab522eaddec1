// Messages of protocol buffers: fields are parts of the message and are written as they were read.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/wire_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  ceems::WireReader reader(message);
  std::string written;
  while (const auto field = reader.next()) {
    CEEMS_CHECK(field->number > 0);
    CEEMS_CHECK(field->has_length || !field->bytes.empty());
    ceems::append_wire_field(written, *field);
    CEEMS_CHECK(message.starts_with(written));
  }
  CEEMS_CHECK(!reader.good() || written == message);
  CEEMS_CHECK(!reader.next());
  return 0;
}
