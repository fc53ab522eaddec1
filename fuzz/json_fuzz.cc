// JSON of any origin: reading never fails otherwise than by its result, and what is written is JSON
// again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/json_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string canonical;
  if (ceems::append_json(canonical, text)) {
    // Bytes that are not UTF-8 become the escape \ufffd, which reads as a character. Once.
    std::string second;
    std::string third;
    if (!ceems::append_json(second, canonical) || !ceems::append_json(third, second) ||
        second != third) {
      std::abort();
    }
  } else if (!canonical.empty()) {
    std::abort();
  }
  std::string html;
  ceems::JsonWriter(html).begin_object().member(text, text).end_object();
  std::string plain;
  ceems::JsonWriter(plain, ceems::JsonEscape::kPlain)
      .begin_object()
      .member(text, text)
      .end_object();
  std::string from_html;
  std::string from_plain;
  if (html.find_first_of("<>&") != std::string::npos || !ceems::append_json(from_html, html) ||
      !ceems::append_json(from_plain, plain)) {
    std::abort();
  }
  std::string again;
  if (!ceems::append_json(again, from_html) || again != from_plain) {
    std::abort();
  }
  return 0;
}
