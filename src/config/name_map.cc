#include "config/name_map.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "config/section.h"

namespace ceems::config {
namespace {

constexpr std::size_t kMaxTableBytes = std::size_t{64} << 20U;

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

bool is_named(const std::vector<std::string>& parts, std::string_view part) {
  return std::ranges::any_of(parts, [&](const std::string& known) {
    return known == "*" || known == in_lower_case(part);
  });
}

std::string_view next_word(std::string_view& line) {
  line = trim(line);
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

}  // namespace

Result<NameMap> NameMap::read(const Node& node,
                              const std::string& directory,
                              std::string_view reserved) {
  NameMap map;
  map.reserved_ = reserved;
  std::string table;
  Section section(node);
  section.only({"lower_case", "strip_domain", "strip_mail", "table"})
      .boolean("lower_case", map.lower_case_)
      .list("strip_domain", map.domains_)
      .list("strip_mail", map.mails_)
      .file("table", table, directory);
  if (!section.ok()) {
    return fail(section.done().error());
  }
  for (auto* const parts : {&map.domains_, &map.mails_}) {
    std::ranges::transform(*parts, parts->begin(), in_lower_case);
  }
  if (!table.empty()) {
    if (auto done = map.read_table(table); !done) {
      return fail(node["table"].error(done.error().message));
    }
  }
  return map;
}

Result<> NameMap::read_table(const std::string& file) {
  std::ifstream input(file);
  if (!input) {
    return fail(ErrorCode::kNotFound, "cannot read {}", file);
  }
  std::size_t number = 0;
  std::size_t bytes = 0;
  for (std::string line; std::getline(input, line);) {
    ++number;
    bytes += line.size();
    if (bytes > kMaxTableBytes) {
      return fail(ErrorCode::kInvalidArgument, "{}: expected at most 64 MiB", file);
    }
    std::string_view rest(line);
    const std::string_view login = next_word(rest);
    if (login.empty() || login.front() == '#') {
      continue;
    }
    const std::string_view name = next_word(rest);
    if (name.empty() || !trim(rest).empty()) {
      return fail(ErrorCode::kInvalidArgument, "{}:{}: expected a login and a name", file, number);
    }
    const auto known = table_.emplace(lower_case_ ? in_lower_case(login) : login, name);
    if (!known.second && known.first->second != name) {
      return fail(ErrorCode::kInvalidArgument, "{}:{}: the login has another name above", file,
                  number);
    }
  }
  for (const auto& [login, name] : table_) {
    // Programs one behind the other would make two names of the login.
    if (name != reserved_ && mapped(name) != name) {
      return fail(ErrorCode::kInvalidArgument,
                  "{}: the name '{}' of '{}' is mapped again, to '{}': give '{}' the last name",
                  file, name, login, mapped(name), login);
    }
  }
  return {};
}

std::string NameMap::mapped(std::string_view login) const {
  if (const auto found = table_.find(lower_case_ ? in_lower_case(login) : std::string(login));
      found != table_.end()) {
    return found->second;
  }
  std::string_view name = login;
  if (const auto slash = name.find('\\');
      slash != std::string_view::npos && is_named(domains_, name.substr(0, slash))) {
    name.remove_prefix(slash + 1);
  }
  if (const auto at = name.rfind('@');
      at != std::string_view::npos && is_named(mails_, name.substr(at + 1))) {
    name = name.substr(0, at);
  }
  return lower_case_ ? in_lower_case(name) : std::string(name);
}

std::string NameMap::apply(std::string_view login) const {
  std::string name = mapped(login);
  const bool reserved = name == reserved_ && login != reserved_;
  // ceems_lb and the API server behind it may both map a login: what would change again is kept,
  // as a login of two domains.
  return name.empty() || reserved || mapped(name) != name ? std::string(login) : name;
}

}  // namespace ceems::config
