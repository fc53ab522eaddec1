#include "ingest/manager/json_cutter.h"

#include <algorithm>
#include <cstddef>

#include "base/strings.h"

namespace ceems::ingest {
namespace {

constexpr std::size_t kMaxElement = std::size_t{4} << 20U;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

std::unexpected<Error> JsonCutter::wrong(std::string_view why) const {
  return key_.empty() ? fail(ErrorCode::kParse, "{}", why)
                      : fail(ErrorCode::kParse, "{}, in or after {}", why, printable(key_, 80));
}

Result<> JsonCutter::keep(char c) {
  if (text_.size() >= kMaxElement) {
    return wrong("an element of more than 4 MiB");
  }
  text_ += c;
  return {};
}

Result<> JsonCutter::end_element() {
  if (text_.empty()) {
    return {};
  }
  if (!has_member_ || (depth_ == 2 && keyed_ && !has_key_)) {
    return wrong("a member without a name");
  }
  Result<> taken;
  if (depth_ == 2) {
    taken = take_({.member = member_, .key = keyed_ ? key_ : std::string_view(), .json = text_});
    has_key_ = false;
  }
  text_.clear();
  return taken;
}

Result<> JsonCutter::open(char c) {
  ++depth_;
  if (depth_ == 1) {
    return c == '{' ? Result<>() : wrong("expected a JSON object");
  }
  if (depth_ == 2 && has_member_ && text_.empty() &&
      std::ranges::find(members_, member_) != members_.end()) {
    inside_ = true;
    keyed_ = c == '{';
    key_.clear();
    if (!keyed_) {
      lists_.insert(member_);
    }
    return {};
  }
  return keep(c);
}

Result<> JsonCutter::close(char c) {
  if (!between()) {
    --depth_;
    return depth_ < 0 ? wrong("a bracket too many") : keep(c);
  }
  Result<> taken = end_element();
  if (--depth_ == 1) {
    inside_ = false;
  }
  ended_ = depth_ == 0;
  return taken;
}

Result<> JsonCutter::add_character(char c) {
  if (in_string_) {
    if (!escaped_ && c == '"') {
      in_string_ = false;
    }
    escaped_ = !escaped_ && c == '\\';
    return keep(c);
  }
  if (is_blank(c)) {
    return {};  // insignificant outside of strings
  }
  began_ = true;
  if (ended_) {
    return wrong("text after the JSON document");
  }
  if (depth_ == 0 && c != '{' && c != '[') {
    return wrong("expected a JSON object");
  }
  switch (c) {
    case '"':
      in_string_ = true;
      return keep(c);
    case '{':
    case '[':
      return open(c);
    case '}':
    case ']':
      return close(c);
    case ',':
      if (between()) {
        Result<> taken = end_element();
        has_member_ = has_member_ && depth_ == 2;
        return taken;
      }
      return keep(c);
    case ':': {
      const bool top = depth_ == 1 && !has_member_;
      if (top || (depth_ == 2 && inside_ && keyed_ && !has_key_)) {
        const std::string_view quoted = text_;
        (top ? member_ : key_) =
            quoted.size() < 2 ? std::string() : std::string(quoted.substr(1, quoted.size() - 2));
        text_.clear();
        (top ? has_member_ : has_key_) = true;
        return {};
      }
      return keep(c);
    }
    default:
      return keep(c);
  }
}

Result<> JsonCutter::add(std::string_view part) {
  while (!part.empty()) {
    if (in_string_ && !escaped_) {
      const std::string_view plain = part.substr(0, part.find_first_of("\"\\"));
      if (text_.size() + plain.size() > kMaxElement) {
        return wrong("an element of more than 4 MiB");
      }
      text_ += plain;
      part.remove_prefix(plain.size());
      if (part.empty()) {
        break;
      }
    }
    CEEMS_TRY(add_character(part.front()));
    part.remove_prefix(1);
  }
  return {};
}

Result<> JsonCutter::finish() const {
  return ended_ ? Result<>() : wrong("the JSON document is incomplete");
}

}  // namespace ceems::ingest
