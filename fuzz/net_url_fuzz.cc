// Query strings, percent-encoding, paths, listening addresses, Accept-Encoding and base64 from
// peers and flags. Checks what must hold for every text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "crypto/base64.h"
#include "net/encoding.h"
#include "net/http.h"
#include "net/server/listen.h"
#include "net/server/port_holder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(ceems::net::parse_query(text));
  CEEMS_CHECK(ceems::net::url_decode(ceems::net::url_encode(text)) == text);
  static_cast<void>(ceems::net::url_decode(text));
  if (const auto clean = ceems::net::clean_path(text)) {
    CEEMS_CHECK(clean->starts_with('/'));
    CEEMS_CHECK(!ceems::net::clean_path(*clean));
  }
  CEEMS_CHECK(ceems::crypto::base64_decode(ceems::crypto::base64_encode(text)) == text);
  static_cast<void>(ceems::crypto::base64_decode(text));
  static_cast<void>(ceems::net::negotiate_encoding(text));
  static_cast<void>(ceems::net::compressible_type(text));
  static_cast<void>(ceems::net::parse_listen_address(text));
  static_cast<void>(ceems::net::listening_inodes(text, 80));
  return 0;
}
