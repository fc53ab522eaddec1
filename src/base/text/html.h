#pragma once

#include <string>
#include <string_view>

namespace ceems {

/// Escapes & < > " ' for HTML text and attribute values.
std::string escape_html(std::string_view text);

}  // namespace ceems
