#include "config/environment.h"

#include <utility>

#include "base/strings.h"

namespace ceems::config {
namespace {

constexpr std::string_view kLiteralToken = "[[{$}]]";

bool is_special(char c) {
  return std::string_view("*#$@!?-0123456789").find(c) != std::string_view::npos;
}

bool is_name(char c) {
  return is_word(c, "_");
}

/// The variable name at the start of `text`, which follows a '$', and the number of characters that
/// it takes up. ("", n > 0) means broken syntax, which is dropped; ("", 0) means a lone dollar
/// sign, which stays.
std::pair<std::string_view, std::size_t> variable(std::string_view text) {
  if (text.empty()) {
    return {"", 0};
  }
  if (text.front() == '{') {
    if (text.size() > 2 && is_special(text[1]) && text[2] == '}') {
      return {text.substr(1, 1), 3};
    }
    const std::size_t close = text.find('}');
    if (close == std::string_view::npos) {
      return {"", 1};
    }
    return {text.substr(1, close - 1), close + 1};
  }
  if (is_special(text.front())) {
    return {text.substr(0, 1), 1};
  }
  std::size_t length = 0;
  while (length < text.size() && is_name(text[length])) {
    ++length;
  }
  return {text.substr(0, length), length};
}

}  // namespace

Result<std::string> expand_environment(
    std::string_view text, const std::function<std::string(const std::string&)>& lookup) {
  if (text.find(kLiteralToken) != std::string_view::npos) {
    return fail(
        ErrorCode::kInvalidArgument,
        "expanding env vars is not supported with literal template token {} in the config file",
        kLiteralToken);
  }
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    out.append(text.substr(0, dollar));
    if (dollar == std::string_view::npos) {
      break;
    }
    text.remove_prefix(dollar + 1);
    const auto [name, length] = variable(text);
    if (length == 0 || name == "$") {
      out.push_back('$');
    } else if (!name.empty()) {
      out.append(lookup(std::string(name)));
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace ceems::config
