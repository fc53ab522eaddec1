#include "exporter/profile/symbol/demangle.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/utf8.h"
#include "exporter/profile/symbol/demangle/itanium_node.h"

namespace ceems::exporter::profile {
namespace {

constexpr unsigned kMaxDepth = 128;
constexpr unsigned kMaxSteps = 20'000;

struct Basic {
  char code;
  std::string_view text;
};
constexpr std::array kBasics = {Basic{'a', "i8"},   Basic{'b', "bool"},  Basic{'c', "char"},
                                Basic{'d', "f64"},  Basic{'e', "str"},   Basic{'f', "f32"},
                                Basic{'h', "u8"},   Basic{'i', "isize"}, Basic{'j', "usize"},
                                Basic{'l', "i32"},  Basic{'m', "u32"},   Basic{'n', "i128"},
                                Basic{'o', "u128"}, Basic{'p', "_"},     Basic{'s', "i16"},
                                Basic{'t', "u16"},  Basic{'u', "()"},    Basic{'v', "..."},
                                Basic{'x', "i64"},  Basic{'y', "u64"},   Basic{'z', "!"}};

/// Writes the name while it parses. A back reference parses an earlier place again, so the number
/// of steps is bounded. Functions return false for malformed names.
class Demangler {
 public:
  Demangler(std::string_view text, DemangleMode mode, std::size_t limit)
      : text_(text), mode_(mode), limit_(limit) {}

  bool whole() {
    if (!path(true)) {
      return false;
    }
    // The crate that made an instance of a generic function follows, and may be ignored.
    return at_ == text_.size() || text_[at_] == '.' || text_[at_] == '$' ||
           (text_[at_] >= 'A' && text_[at_] <= 'Z');
  }

  std::string take() { return std::move(out_); }

 private:
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char expected) {
    const bool found = peek() == expected;
    at_ += found ? 1 : 0;
    return found;
  }

  bool put(std::string_view more) {
    if (silent_ == 0) {
      out_ += more;
    }
    return out_.size() <= limit_;
  }

  /// "_" is 0, "0_" is 1, in base 62.
  std::optional<std::uint64_t> base62() {
    if (take('_')) {
      return 0;
    }
    std::uint64_t value = 0;
    while (!take('_')) {
      const char c = peek();
      unsigned digit = 0;
      if (c >= '0' && c <= '9') {
        digit = static_cast<unsigned>(c - '0');
      } else if (c >= 'a' && c <= 'z') {
        digit = static_cast<unsigned>(c - 'a') + 10;
      } else if (c >= 'A' && c <= 'Z') {
        digit = static_cast<unsigned>(c - 'A') + 36;
      } else {
        return std::nullopt;
      }
      if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 62) {
        return std::nullopt;
      }
      value = value * 62 + digit;
      ++at_;
    }
    return value == std::numeric_limits<std::uint64_t>::max() ? std::nullopt
                                                              : std::optional(value + 1);
  }

  /// The number of an identifier that would be ambiguous without it; 0 if it has none.
  std::optional<std::uint64_t> disambiguator() {
    if (!take('s')) {
      return 0;
    }
    const auto value = base62();
    return value ? std::optional(*value + 1) : std::nullopt;
  }

  std::optional<std::string_view> plain_identifier() {
    take('u');  // in punycode, which is shown undecoded
    // No number has a leading zero, so what follows a zero is another identifier.
    const std::size_t end =
        peek() == '0' ? at_ + 1
                      : std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    const auto size = parse_int<std::size_t>(text_.substr(at_, end - at_));
    at_ = end;
    take('_');
    if (!size || *size > text_.size() - at_) {
      return std::nullopt;
    }
    const std::string_view found = text_.substr(at_, *size);
    at_ += *size;
    return found;
  }

  template <class Parse>
  bool back_reference(const Parse& parse) {
    const std::size_t start = at_;
    ++at_;
    const auto target = base62();
    if (!target || *target >= start) {
      return false;
    }
    const std::size_t after = std::exchange(at_, static_cast<std::size_t>(*target));
    const bool good = parse();
    at_ = after;
    return good;
  }

  bool enter() { return ++steps_ <= kMaxSteps && ++depth_ <= kMaxDepth; }
  bool leave(bool good) {
    --depth_;
    return good && out_.size() <= limit_;
  }

  /// @param in_value  generic arguments are written ::<T> in names of functions and <T> in types
  bool path(bool in_value) {
    if (!enter()) {
      return false;
    }
    switch (peek()) {
      case 'C': {
        ++at_;
        const auto number = disambiguator();
        const auto name = number ? plain_identifier() : std::nullopt;
        return leave(name && put(*name));
      }
      case 'N':
        return leave(nested(in_value));
      case 'M':
        ++at_;
        return leave(impl_path() && put("<") && type() && put(">"));
      case 'X':
        ++at_;
        return leave(impl_path() && put("<") && type() && put(" as ") && path(false) && put(">"));
      case 'Y':
        ++at_;
        return leave(put("<") && type() && put(" as ") && path(false) && put(">"));
      case 'I':
        ++at_;
        return leave(path(in_value) && generic_arguments(in_value));
      case 'B':
        return leave(back_reference([&] { return path(in_value); }));
      default:
        return leave(false);
    }
  }

  bool nested(bool in_value) {
    ++at_;
    const char space = peek();
    ++at_;
    if (!path(in_value)) {
      return false;
    }
    const auto number = disambiguator();
    const auto name = number ? plain_identifier() : std::nullopt;
    if (!name) {
      return false;
    }
    if (space >= 'A' && space <= 'Z') {
      const std::string_view kind = space == 'C' ? "closure" : space == 'S' ? "shim" : "";
      return put(fmt::format("::{{{}{}{}#{}}}", kind, name->empty() ? "" : ":", *name, *number));
    }
    return name->empty() || (put("::") && put(*name));
  }

  /// Where an impl stands, which is not written.
  bool impl_path() {
    ++silent_;
    const bool good = disambiguator() && path(false);
    --silent_;
    return good;
  }

  bool generic_arguments(bool in_value) {
    const bool hide = mode_ == DemangleMode::kSimplified;
    silent_ += hide ? 1 : 0;
    bool good = put(in_value ? "::<" : "<");
    for (bool first = true; good && !take('E'); first = false) {
      good = (first || put(", ")) && generic_argument();
    }
    good = good && put(">");
    silent_ -= hide ? 1 : 0;
    return good;
  }

  bool generic_argument() {
    if (take('L')) {
      return base62() && put("'_");
    }
    if (take('K')) {
      return constant();
    }
    return type();
  }

  bool type() {
    if (!enter()) {
      return false;
    }
    const char code = peek();
    const auto basic = std::ranges::find(kBasics, code, &Basic::code);
    if (basic != kBasics.end()) {
      ++at_;
      return leave(put(basic->text));
    }
    switch (code) {
      case 'A':
        ++at_;
        return leave(put("[") && type() && put("; ") && constant() && put("]"));
      case 'S':
        ++at_;
        return leave(put("[") && type() && put("]"));
      case 'T':
        ++at_;
        return leave(tuple());
      case 'R':
      case 'Q':
        ++at_;
        return leave((!take('L') || base62()) && put(code == 'R' ? "&" : "&mut ") && type());
      case 'P':
      case 'O':
        ++at_;
        return leave(put(code == 'P' ? "*const " : "*mut ") && type());
      case 'F':
        ++at_;
        return leave(function());
      case 'D':
        ++at_;
        return leave(dynamic());
      case 'B':
        return leave(back_reference([&] { return type(); }));
      default:
        return leave(path(false));
    }
  }

  bool tuple() {
    bool good = put("(");
    std::size_t count = 0;
    for (; good && !take('E'); ++count) {
      good = (count == 0 || put(", ")) && type();
    }
    return good && put(count == 1 ? ",)" : ")");
  }

  bool binder() { return !take('G') || base62(); }

  bool function() {
    if (!binder()) {
      return false;
    }
    bool good = !take('U') || put("unsafe ");
    if (take('K')) {
      const auto abi = take('C') ? std::optional<std::string_view>("C") : plain_identifier();
      good = good && abi && put(fmt::format("extern \"{}\" ", *abi));
    }
    good = good && put("fn(");
    for (bool first = true; good && !take('E'); first = false) {
      good = (first || put(", ")) && type();
    }
    if (!good || !put(")")) {
      return false;
    }
    return take('u') || (put(" -> ") && type());
  }

  bool dynamic() {
    bool good = binder() && put("dyn ");
    for (bool first = true; good && !take('E'); first = false) {
      good = (first || put(" + ")) && path(false);
      while (good && take('p')) {
        good = associated_type();
      }
    }
    return good && take('L') && base62();
  }

  /// Written among the generic arguments of the trait before it: Fn<(i32,), Output = u8>
  bool associated_type() {
    silent_ += mode_ == DemangleMode::kSimplified ? 1 : 0;
    if (silent_ == 0 && out_.ends_with('>')) {
      out_.pop_back();
      put(", ");
    } else {
      put("<");
    }
    const auto name = plain_identifier();
    const bool good = name && put(*name) && put(" = ") && type() && put(">");
    silent_ -= mode_ == DemangleMode::kSimplified ? 1 : 0;
    return good;
  }

  bool constant() {
    if (!enter()) {
      return false;
    }
    if (peek() == 'B') {
      return leave(back_reference([&] { return constant(); }));
    }
    if (take('p')) {
      return leave(put("_"));
    }
    const char kind = peek();
    ++at_;
    const bool is_negative = take('n');
    const std::size_t end = text_.find('_', at_);
    if (end == std::string_view::npos) {
      return leave(false);
    }
    const std::string_view digits = text_.substr(at_, end - at_);
    at_ = end + 1;
    std::uint64_t value = 0;
    const auto [last, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (!digits.empty() && last != digits.data() + digits.size()) {
      return leave(false);
    }
    if (error == std::errc::result_out_of_range) {
      return leave(put("0x") && put(digits));
    }
    if (kind == 'b') {
      return leave(put(value == 0 ? "false" : "true"));
    }
    return leave(put(fmt::format("{}{}", is_negative ? "-" : "", value)));
  }

  std::string_view text_;
  DemangleMode mode_;
  std::size_t limit_;
  std::size_t at_ = 0;
  std::string out_;
  unsigned silent_ = 0;
  unsigned depth_ = 0;
  unsigned steps_ = 0;
};

/// Characters that symbols may not have are written $NAME$, and "::" as "..".
std::string rust_unescaped(std::string_view component) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kEscapes = {
      {{"$SP$", "@"},
       {"$BP$", "*"},
       {"$RF$", "&"},
       {"$LT$", "<"},
       {"$GT$", ">"},
       {"$LP$", "("},
       {"$RP$", ")"},
       {"$C$", ","},
       {"..", "::"}}};
  if (component.starts_with("_$")) {
    component.remove_prefix(1);
  }
  std::string out;
  while (!component.empty()) {
    const auto escape = std::ranges::find_if(
        kEscapes, [component](const auto& entry) { return component.starts_with(entry.first); });
    unsigned code = 0;
    if (escape != kEscapes.end()) {
      out += escape->second;
      component.remove_prefix(escape->first.size());
    } else if (const std::size_t end = component.find('$', 1);
               component.starts_with("$u") && end != std::string_view::npos &&
               std::from_chars(component.data() + 2, component.data() + end, code, 16).ptr ==
                   component.data() + end &&
               code >= 0x20 && code < 0x7F) {
      out += static_cast<char>(code);
      component.remove_prefix(end + 1);
    } else {
      out += component.front();
      component.remove_prefix(1);
    }
  }
  return out;
}

bool is_hash(std::string_view component) {
  return component.size() == 17 && component.front() == 'h' &&
         component.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

/// A Rust name in its own form (_R…, RFC 2603) without hashes and lifetimes. kSimplified leaves out
/// generic arguments. Nothing if it is malformed or becomes longer than `limit`.
std::optional<std::string> rust_demangled(std::string_view name,
                                          DemangleMode mode,
                                          std::size_t limit) {
  if (!name.starts_with("_R")) {
    return std::nullopt;
  }
  Demangler demangler(name.substr(2), mode, limit);
  return demangler.whole() ? std::optional(demangler.take()) : std::nullopt;
}

/// A Rust name in the older form, that of C++ with a hash as its last component, which is left out:
/// _ZN4core3fmt5write17h0123456789abcdefE. Nothing for other names.
std::optional<std::string> rust_legacy_demangled(std::string_view name) {
  if (!name.starts_with("_ZN")) {
    return std::nullopt;
  }
  std::string_view rest = name.substr(3);
  std::vector<std::string_view> components;
  while (!rest.starts_with('E')) {
    const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const auto size = parse_int<std::size_t>(rest.substr(0, end));
    rest.remove_prefix(end);
    if (!size || *size == 0 || *size > rest.size()) {
      return std::nullopt;
    }
    components.push_back(rest.substr(0, *size));
    rest.remove_prefix(*size);
  }
  if (components.size() < 2 || !is_hash(components.back()) || (rest.size() > 1 && rest[1] != '.')) {
    return std::nullopt;
  }
  components.pop_back();
  std::string out;
  for (const std::string_view component : components) {
    out += out.empty() ? "" : "::";
    out += rust_unescaped(component);
  }
  return out;
}

constexpr std::size_t kMaxMangled = 4096;
constexpr std::size_t kMaxDemangled = 8192;

std::optional<std::string> itanium_demangled(std::string_view name, DemangleMode mode) {
  itanium::Arena arena;
  const itanium::Node* root = itanium::parse(name, arena);
  return root == nullptr ? std::nullopt : itanium::print(*root, mode, kMaxDemangled);
}

}  // namespace

std::optional<DemangleMode> demangle_mode(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, DemangleMode>, 4> kModes = {
      {{"none", DemangleMode::kNone},
       {"simplified", DemangleMode::kSimplified},
       {"templates", DemangleMode::kTemplates},
       {"full", DemangleMode::kFull}}};
  for (const auto& [name, mode] : kModes) {
    if (same_in_any_case(trim(text), name)) {
      return mode;
    }
  }
  return std::nullopt;
}

std::string demangled(std::string_view name, DemangleMode mode) {
  if (mode == DemangleMode::kNone || name.size() > kMaxMangled) {
    return std::string(name);
  }
  std::optional<std::string> found;
  if (name.starts_with("_R")) {
    found = rust_demangled(name, mode, kMaxDemangled);
  } else if (name.starts_with("_Z")) {
    found = rust_legacy_demangled(name);
    if (!found) {
      found = itanium_demangled(name, mode);
    }
  }
  return found ? std::move(*found) : std::string(name);
}

}  // namespace ceems::exporter::profile
