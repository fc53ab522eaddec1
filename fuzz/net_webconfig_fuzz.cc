// Web configuration files and HTTP client blocks.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "config/yaml.h"
#include "net/client/client_config.h"
#include "net/client/oauth2.h"
#include "net/server/web_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(ceems::net::parse_token(text));
  if (const auto node = ceems::config::parse_yaml(text, "fuzz.yml")) {
    static_cast<void>(ceems::net::parse_web_config(*node, "/etc"));
    static_cast<void>(ceems::net::client_options(*node, "/etc"));
  }
  return 0;
}
