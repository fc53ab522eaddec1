#pragma once

#include <optional>
#include <string_view>

namespace ceems::access {

/// The role of a person, weakest first. The zero value may do nothing. The table in
/// docs/api/access.md shows what each role may see.
enum class Role { kNobody, kUser, kProjectLead, kSupport, kAdmin };

/// "nobody", "user", "project_lead", "support", "admin".
std::string_view role_name(Role role);

/// The role with this name; nothing for other texts.
std::optional<Role> parse_role(std::string_view text);

}  // namespace ceems::access
