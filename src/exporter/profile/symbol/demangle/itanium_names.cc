// Names of functions: the part of the parser for <encoding>, <name> and <substitution>.
#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "exporter/profile/symbol/demangle/itanium_parser.h"

namespace ceems::exporter::profile::itanium {
namespace {

using Kind = Node::Kind;

constexpr unsigned kMaxDepth = 128;
constexpr std::size_t kMaxSubstitutions = 4096;

/// Prefixes of names that the compiler makes, with what follows: a type or a name.
struct Special {
  std::string_view code;
  std::string_view text;
  bool of_type = false;
};
constexpr std::array kSpecials = {
    Special{"TV", "vtable for ", true},
    Special{"TT", "VTT for ", true},
    Special{"TI", "typeinfo for ", true},
    Special{"TS", "typeinfo name for ", true},
    Special{"TA", "template parameter object for ", true},
    Special{"TH", "TLS init function for "},
    Special{"TW", "TLS wrapper function for "},
    Special{"GV", "guard variable for "},
    Special{"GR", "reference temporary for "},
};

}  // namespace

const Node* Parser::make(Node node) {
  return arena_.make(std::move(node));
}

const Node* Parser::sequence(List list) {
  if (std::ranges::find(list, nullptr) != list.end()) {
    return nullptr;
  }
  return make({.kind = Kind::kSequence, .list = std::move(list)});
}

std::optional<Parser::List> Parser::list_until(std::string_view end,
                                               const Node* (Parser::*parse)()) {
  List list;
  while (!take(end)) {
    list.push_back((this->*parse)());
    if (list.back() == nullptr) {
      return std::nullopt;
    }
  }
  return list;
}

bool Parser::take(std::string_view expected) {
  if (!rest_.starts_with(expected)) {
    return false;
  }
  rest_.remove_prefix(expected.size());
  return true;
}

std::string_view Parser::digits() {
  const std::size_t end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
  const std::string_view found = rest_.substr(0, end);
  rest_.remove_prefix(end);
  return found;
}

std::optional<std::uint64_t> Parser::number() {
  return parse_int(digits());
}

/// "_" is the first, "0_" the second.
std::optional<std::uint64_t> Parser::discriminator_number() {
  if (take("_")) {
    return 0;
  }
  const auto value = number();
  return value && *value < (1U << 20U) && take("_") ? std::optional(*value + 1) : std::nullopt;
}

const Node* Parser::remember(const Node* node) {
  if (node == nullptr || substitutions_.size() == kMaxSubstitutions) {
    return nullptr;
  }
  substitutions_.push_back(node);
  return node;
}

const Node* Parser::with_arguments(const Node* of, bool of_function) {
  auto arguments = template_arguments(of_function);
  if (of == nullptr || !arguments) {
    return nullptr;
  }
  return make({.kind = Kind::kTemplate, .a = of, .list = std::move(*arguments)});
}

const Node* Parser::whole() {
  if (!take("_Z")) {
    return nullptr;
  }
  const Node* found = encoding();
  return rest_.empty() || rest_.starts_with('.') ? found : nullptr;
}

const Node* Parser::encoding() {
  if (++depth_ > kMaxDepth) {
    return nullptr;
  }
  if (peek() == 'T' || (peek() == 'G' && peek(1) != 'n')) {
    const Node* special = special_name();
    --depth_;
    return special;
  }
  const List outer = std::exchange(arguments_, {});
  const std::size_t first_forward = forward_.size();
  NameState state;
  const Node* function_name = name(&state);
  if (function_name == nullptr) {
    return nullptr;
  }
  for (std::size_t i = first_forward; i < forward_.size(); ++i) {
    const auto [node, index] = forward_[i];
    if (index >= arguments_.size()) {
      return nullptr;
    }
    node->a = arguments_[index];
  }
  forward_.resize(first_forward);
  const Node* result = function_name;
  if (!rest_.empty() && peek() != 'E' && peek() != '.') {
    Node function{.kind = Kind::kEncoding, .text = state.qualifiers, .a = function_name};
    if (state.ends_with_arguments && !state.has_no_result) {
      function.b = type();
      if (function.b == nullptr) {
        return nullptr;
      }
    }
    if (!take("v")) {
      while (!rest_.empty() && peek() != 'E' && peek() != '.') {
        function.list.push_back(type());
        if (function.list.back() == nullptr) {
          return nullptr;
        }
      }
    }
    result = make(std::move(function));
  }
  arguments_ = outer;
  --depth_;
  return result;
}

/// <call-offset>: "h" NUMBER "_" | "v" NUMBER "_" NUMBER "_"
const Node* Parser::thunk() {
  const auto offset = [this] {
    take("n");
    return !digits().empty() && take("_");
  };
  const auto call_offset = [&] {
    if (take("h")) {
      return offset();
    }
    return take("v") && offset() && offset();
  };
  std::string_view prefix = "non-virtual thunk to ";
  if (take("Tc")) {
    prefix = "covariant return thunk to ";
    // The offsets of the object, and of the returned type.
    const bool has_first = call_offset();
    if (!has_first || !call_offset()) {
      return nullptr;
    }
  } else {
    take("T");
    prefix = peek() == 'v' ? "virtual thunk to " : prefix;
    if (!call_offset()) {
      return nullptr;
    }
  }
  return about(encoding(), Kind::kPrefixed, prefix);
}

const Node* Parser::special_name() {
  for (const Special& special : kSpecials) {
    if (take(special.code)) {
      const Node* of = special.of_type ? type() : name(nullptr);
      if (special.code == "GR") {
        discriminator_number();
      }
      return about(of, Kind::kPrefixed, special.text);
    }
  }
  if (take("GTt") || take("GTn")) {
    return about(encoding(), Kind::kPrefixed, "transaction clone for ");
  }
  if (take("TC")) {
    const Node* first = type();
    const bool separated = !digits().empty() && take("_");
    const Node* second = separated ? type() : nullptr;
    return first == nullptr || second == nullptr
               ? nullptr
               : sequence({text("construction vtable for "), second, text("-in-"), first});
  }
  return thunk();
}

const Node* Parser::name(NameState* state) {
  if (peek() == 'N') {
    return nested_name(state);
  }
  if (peek() == 'Z') {
    return local_name(state);
  }
  const bool is_function = state != nullptr;
  if (peek() == 'S' && peek(1) != 't') {
    const Node* found = substitution();
    if (found == nullptr || peek() != 'I') {
      return nullptr;
    }
    if (is_function) {
      state->ends_with_arguments = true;
    }
    return with_arguments(found, is_function);
  }
  const Node* found = nullptr;
  if (take("St")) {
    const Node* component = unqualified_name(nullptr, state);
    found = component == nullptr ? nullptr
                                 : make({.kind = Kind::kNested, .a = text("std"), .b = component});
  } else {
    found = unqualified_name(nullptr, state);
  }
  if (found == nullptr || peek() != 'I') {
    return found;
  }
  if (is_function) {
    state->ends_with_arguments = true;
  }
  return with_arguments(remember(found), is_function);
}

std::string_view Parser::qualifiers() {
  constexpr std::array<std::string_view, 8> kTexts = {
      "",       " restrict",       " volatile",       " volatile restrict",
      " const", " const restrict", " const volatile", " const volatile restrict"};
  std::size_t index = 0;
  index += take("r") ? 1 : 0;
  index += take("V") ? 2 : 0;
  index += take("K") ? 4 : 0;
  return kTexts.at(index);
}

const Node* Parser::nested_name(NameState* state) {
  if (!take("N") || ++depth_ > kMaxDepth) {
    return nullptr;
  }
  std::string_view qualifier = qualifiers();
  if (take("O")) {
    qualifier = qualifier == " const" ? " const &&" : qualifier.empty() ? " &&" : qualifier;
  } else if (take("R")) {
    qualifier = qualifier == " const" ? " const &" : qualifier.empty() ? " &" : qualifier;
  }
  if (state != nullptr) {
    state->qualifiers = qualifier;
  }
  const Node* scope = take("St") ? text("std") : nullptr;
  bool in_substitution = false;
  while (!take("E")) {
    if (state != nullptr) {
      state->ends_with_arguments = false;
    }
    if (take("M")) {
      continue;  // the initializer of a data member
    }
    in_substitution = false;
    const Node* before = scope;
    scope = nested_component(scope, state, in_substitution);
    if (scope == nullptr || scope == before) {
      return nullptr;
    }
    if (!in_substitution) {
      remember(scope);
    }
  }
  if (scope == nullptr || in_substitution || substitutions_.empty()) {
    return nullptr;
  }
  substitutions_.pop_back();  // the whole name is remembered by those who may
  --depth_;
  return scope;
}

const Node* Parser::nested_component(const Node* scope, NameState* state, bool& in_substitution) {
  if (peek() == 'I') {
    const bool is_function = state != nullptr;
    if (is_function) {
      state->ends_with_arguments = true;
    }
    return with_arguments(scope, is_function);
  }
  if (scope == nullptr) {
    if (peek() == 'T') {
      return parameter();
    }
    if (peek() == 'S') {
      in_substitution = true;
      return substitution();
    }
    if (peek() == 'D' && (peek(1) == 't' || peek(1) == 'T')) {
      bool is_substitutable = false;
      return d_type(is_substitutable);
    }
  }
  const Node* component = unqualified_name(scope, state);
  if (component == nullptr || scope == nullptr) {
    return component;
  }
  return make({.kind = Kind::kNested, .a = scope, .b = component});
}

const Node* Parser::local_name(NameState* state) {
  if (!take("Z")) {
    return nullptr;
  }
  const Node* function = encoding();
  if (function == nullptr || !take("E")) {
    return nullptr;
  }
  if (function->kind == Kind::kEncoding) {
    Node without_result = *function;
    without_result.b = nullptr;
    function = make(std::move(without_result));
    if (function == nullptr) {
      return nullptr;
    }
  }
  const auto discriminator = [this] {
    if (take("__")) {
      digits();
      take("_");
    } else if (peek() == '_' && is_digit(peek(1))) {
      rest_.remove_prefix(2);
    }
  };
  const Node* entity = nullptr;
  if (take("s")) {
    discriminator();
    entity = text("string literal");
  } else {
    if (take("d")) {
      discriminator_number();  // of a default argument
    }
    entity = name(state);
    discriminator();
  }
  return entity == nullptr ? nullptr : make({.kind = Kind::kLocal, .a = function, .b = entity});
}

const Node* Parser::source_name() {
  const auto size = number();
  if (!size || *size == 0 || *size > rest_.size()) {
    return nullptr;
  }
  const std::string_view found = rest_.substr(0, static_cast<std::size_t>(*size));
  rest_.remove_prefix(found.size());
  return text(found.starts_with("_GLOBAL__N") ? "(anonymous namespace)" : found);
}

const Node* Parser::with_tags(const Node* node) {
  while (node != nullptr && take("B")) {
    const Node* tag = source_name();
    node = tag == nullptr ? nullptr : about(node, Kind::kTag, tag->text);
  }
  return node;
}

const Node* Parser::constructor(const Node* scope, NameState* state) {
  const bool is_destructor = peek() == 'D';
  rest_.remove_prefix(1);
  const bool inherits = !is_destructor && take("I");
  if (scope == nullptr || !is_digit(peek())) {
    return nullptr;
  }
  rest_.remove_prefix(1);
  if (inherits && name(nullptr) == nullptr) {
    return nullptr;
  }
  if (state != nullptr) {
    state->has_no_result = true;
  }
  const Node* base = make({.kind = Kind::kBaseName, .a = scope});
  return is_destructor ? about(base, Kind::kPrefixed, "~") : base;
}

const Node* Parser::unqualified_name(const Node* scope, NameState* state) {
  take("L");  // internal linkage
  if (take("DC")) {
    auto names = list_until("E", &Parser::source_name);
    return names ? sequence({text("["), make({.kind = Kind::kJoined, .list = std::move(*names)}),
                             text("]")})
                 : nullptr;
  }
  if (is_digit(peek())) {
    return with_tags(source_name());
  }
  if (peek() == 'U') {
    return with_tags(unnamed());
  }
  if (peek() == 'C' || (peek() == 'D' && is_digit(peek(1)))) {
    return with_tags(constructor(scope, state));
  }
  return with_tags(operator_name(state));
}

const Node* Parser::operator_name(NameState* state) {
  for (const Operator& entry : kOperators) {
    if (take(entry.code)) {
      return text(entry.name);
    }
  }
  if (take("cv")) {
    if (state != nullptr) {
      state->has_no_result = true;
    }
    const bool outer = std::exchange(allows_forward_, state != nullptr);
    const Node* target = type();
    allows_forward_ = outer;
    return about(target, Kind::kPrefixed, "operator ");
  }
  if (take("li")) {
    return about(source_name(), Kind::kPrefixed, "operator\"\" ");
  }
  return nullptr;
}

const Node* Parser::unnamed() {
  if (take("Ut")) {
    const auto number = discriminator_number();
    return number ? make({.kind = Kind::kUnnamedType, .number = *number + 1}) : nullptr;
  }
  return take("Ul") ? lambda() : nullptr;
}

const Node* Parser::lambda() {
  Node node{.kind = Kind::kLambda};
  const bool outer = std::exchange(in_lambda_, true);
  while (!take("E")) {
    if (take("v")) {
      continue;
    }
    node.list.push_back(type());
    if (node.list.back() == nullptr) {
      return nullptr;
    }
  }
  in_lambda_ = outer;
  const auto number = discriminator_number();
  if (!number) {
    return nullptr;
  }
  node.number = *number + 1;
  return make(std::move(node));
}

const Node* Parser::substitution() {
  if (!take("S")) {
    return nullptr;
  }
  struct Known {
    std::string_view code;
    std::string_view text;
    std::string_view of_constructor;  ///< a template of char and its traits; empty for no other
    bool has_allocator = false;
  };
  constexpr std::array<Known, 6> kKnown = {{{"a", "std::allocator", ""},
                                            {"b", "std::basic_string", ""},
                                            {"s", "std::string", "std::basic_string", true},
                                            {"i", "std::istream", "std::basic_istream"},
                                            {"o", "std::ostream", "std::basic_ostream"},
                                            {"d", "std::iostream", "std::basic_iostream"}}};
  for (const Known& entry : kKnown) {
    if (!take(entry.code)) {
      continue;
    }
    // Constructors and destructors are named after the template.
    if ((peek() == 'C' || peek() == 'D') && !entry.of_constructor.empty()) {
      Node node{.kind = Kind::kTemplate, .a = text(entry.of_constructor)};
      node.list = {text("char"), text("std::char_traits<char>")};
      if (entry.has_allocator) {
        node.list.push_back(text("std::allocator<char>"));
      }
      return node.a == nullptr || node.list.back() == nullptr ? nullptr : make(std::move(node));
    }
    const Node* known = text(entry.text);
    const Node* tagged = with_tags(known);
    return tagged == known ? known : remember(tagged);
  }
  std::uint64_t index = 0;
  if (!take("_")) {
    // In base 36: "0_" is the second one.
    for (char c = peek(); c != '_'; c = peek()) {
      const bool is_letter = c >= 'A' && c <= 'Z';
      if ((!is_letter && !is_digit(c)) || index > kMaxSubstitutions) {
        return nullptr;
      }
      index = index * 36 + static_cast<std::uint64_t>(is_letter ? c - 'A' + 10 : c - '0');
      rest_.remove_prefix(1);
    }
    rest_.remove_prefix(1);
    ++index;
  }
  return index < substitutions_.size() ? substitutions_[static_cast<std::size_t>(index)] : nullptr;
}

const Node* parse(std::string_view mangled, Arena& arena) {
  return Parser(mangled, arena).whole();
}

}  // namespace ceems::exporter::profile::itanium
