#pragma once

#include <optional>
#include <string_view>

namespace ceems::access {

/// What a person is here, weakest first; the zero value may do nothing. docs/api/access.md has the
/// table of what each may see.
enum class Role { kNobody, kUser, kProjectLead, kSupport, kAdmin };

/// "nobody", "user", "project_lead", "support", "admin".
std::string_view role_name(Role role);

/// The other way; nothing for other texts.
std::optional<Role> parse_role(std::string_view text);

}  // namespace ceems::access
