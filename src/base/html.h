#pragma once

#include <string>
#include <string_view>

namespace ceems {

/// Text for HTML, in attributes too: & < > " ' become references.
std::string escape_html(std::string_view text);

}  // namespace ceems
