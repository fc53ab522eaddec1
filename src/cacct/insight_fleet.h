#pragma once

#include <simdjson.h>

#include <string>

namespace ceems::cacct {

// Answers about the fleet as text, safe for a terminal.

/// The rows of insight/stragglers, a sentence each.
std::string stragglers_text(const simdjson::dom::array& rows);
/// The rows of insight/neighbours, for admins or for the owner of a job.
std::string neighbours_text(const simdjson::dom::array& rows);
/// The rows of insight/nodes/admin.
std::string sick_nodes_text(const simdjson::dom::array& rows);

/// A number without a fraction, its digits in groups: "-1,234".
std::string grouped(double number);

}  // namespace ceems::cacct
