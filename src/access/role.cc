#include "access/role.h"

#include <array>
#include <utility>

namespace ceems::access {
namespace {

constexpr std::array<std::pair<Role, std::string_view>, 5> kNames = {{
    {Role::kNobody, "nobody"},
    {Role::kUser, "user"},
    {Role::kProjectLead, "project_lead"},
    {Role::kSupport, "support"},
    {Role::kAdmin, "admin"},
}};

}  // namespace

std::string_view role_name(Role role) {
  for (const auto& [value, name] : kNames) {
    if (value == role) {
      return name;
    }
  }
  return "nobody";
}

std::optional<Role> parse_role(std::string_view text) {
  for (const auto& [value, name] : kNames) {
    if (name == text) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace ceems::access
