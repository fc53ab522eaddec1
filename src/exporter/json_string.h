#pragma once

#include <string>
#include <string_view>

namespace ceems::exporter {

/// Appends `text` as a JSON string (RFC 8259); bytes that are no UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace ceems::exporter
