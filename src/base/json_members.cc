#include "base/json_members.h"

#include <cmath>
#include <utility>

#include "base/json_reader.h"
#include "base/strings.h"

namespace ceems {

JsonMembers JsonMembers::parse(std::string_view json) {
  JsonMembers members;
  JsonScanner scanner(json);
  constexpr int kDepth = 2;
  each_member(scanner, [&](const std::string& name) {
    Value value{.text = {}, .quoted = scanner.at('"')};
    const bool good = value.quoted ? scanner.string(value.text) : scanner.value(value.text, kDepth);
    if (good && (value.quoted || value.text != "null")) {
      members.members_[name] = std::move(value);
    }
    return good;
  });
  return members;
}

std::string_view JsonMembers::text(std::string_view name) const {
  const auto found = members_.find(name);
  return found == members_.end() ? std::string_view() : std::string_view(found->second.text);
}

std::string_view JsonMembers::first(std::string_view name, std::string_view other) const {
  const std::string_view value = text(name);
  return value.empty() ? text(other) : value;
}

std::optional<double> JsonMembers::number(std::string_view name) const {
  const auto found = members_.find(name);
  if (found == members_.end() || found->second.quoted) {
    return std::nullopt;
  }
  const auto value = parse_double(found->second.text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace ceems
