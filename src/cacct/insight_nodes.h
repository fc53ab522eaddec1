#pragma once

#include <simdjson.h>

#include <string>

namespace ceems::cacct {

/// The rows of insight/nodes/admin as text, safe for a terminal.
std::string sick_nodes_text(const simdjson::dom::array& rows);

}  // namespace ceems::cacct
