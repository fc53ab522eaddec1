// Cursors and entity tags from clients: a text that is accepted as a cursor is one of ours, in its
// only spelling.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/answer/entity_tag.h"
#include "api/request/paging.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  ceems::api::Params params;
  params.cursor = text;
  for (std::size_t parts = 1; parts < 4; ++parts) {
    const auto page = ceems::api::parse_page(params, "units", parts);
    if (!page || text.empty()) {
      continue;
    }
    const auto& key = page.value();
    if (!key || ceems::api::cursor_text("units", key->after) != text) {
      std::abort();
    }
  }
  // A key made from the input must survive the round trip.
  const std::vector<std::string> key{text.substr(0, size / 2), text.substr(size / 2)};
  params.cursor = ceems::api::cursor_text("users", key);
  const auto again = ceems::api::parse_page(params, "users", 2);
  if (size < 0x10000) {
    const auto& page = again.value();  // throws if there is none
    if (!page || page->after != key) {
      std::abort();
    }
  }
  ceems::net::Request request;
  request.headers.emplace_back("If-None-Match", text);
  if (ceems::api::client_has(request, "W/\"a\"") && text.find("\"a\"") == std::string::npos) {
    std::abort();
  }
  return 0;
}
