// Types, template arguments and expressions of the parser.
#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "exporter/profile/symbol/demangle/itanium_parser.h"

namespace ceems::exporter::profile::itanium {
namespace {

using Kind = Node::Kind;

constexpr unsigned kMaxTypeDepth = 128;

struct Code {
  std::string_view code;
  std::string_view text;
};
constexpr std::array kBuiltins = {
    Code{"v", "void"},
    Code{"w", "wchar_t"},
    Code{"b", "bool"},
    Code{"c", "char"},
    Code{"a", "signed char"},
    Code{"h", "unsigned char"},
    Code{"s", "short"},
    Code{"t", "unsigned short"},
    Code{"i", "int"},
    Code{"j", "unsigned int"},
    Code{"l", "long"},
    Code{"m", "unsigned long"},
    Code{"x", "long long"},
    Code{"y", "unsigned long long"},
    Code{"n", "__int128"},
    Code{"o", "unsigned __int128"},
    Code{"f", "float"},
    Code{"d", "double"},
    Code{"e", "long double"},
    Code{"g", "__float128"},
    Code{"z", "..."},
    Code{"Dd", "decimal64"},
    Code{"De", "decimal128"},
    Code{"Df", "decimal32"},
    Code{"Dh", "half"},
    Code{"Di", "char32_t"},
    Code{"Ds", "char16_t"},
    Code{"Du", "char8_t"},
    Code{"Da", "auto"},
    Code{"Dc", "decltype(auto)"},
    Code{"Dn", "decltype(nullptr)"},
    Code{"DF16b", "std::bfloat16_t"},
    Code{"DF16_", "_Float16"},
    Code{"DF32_", "_Float32"},
    Code{"DF64_", "_Float64"},
    Code{"DF128_", "_Float128"},
    Code{"DF32x", "_Float32x"},
    Code{"DF64x", "_Float64x"},
};

/// Suffixes of integer literals. Literals of other types have the type before them.
constexpr std::array kLiteralSuffixes = {
    Code{"int", ""},         Code{"unsigned int", "u"},
    Code{"long", "l"},       Code{"unsigned long", "ul"},
    Code{"long long", "ll"}, Code{"unsigned long long", "ull"}};

}  // namespace

const Node* Parser::type() {
  if (++depth_ > kMaxTypeDepth) {
    return nullptr;
  }
  bool is_substitutable = true;
  const Node* found = type_without_substitution(is_substitutable);
  --depth_;
  return found != nullptr && is_substitutable ? remember(found) : found;
}

const Node* Parser::builtin() {
  for (const Code& entry : kBuiltins) {
    if (take(entry.code)) {
      return text(entry.text);
    }
  }
  return nullptr;
}

const Node* Parser::type_without_substitution(bool& is_substitutable) {
  const auto pointer = [this](std::string_view sign) -> const Node* {
    rest_.remove_prefix(1);
    return about(type(), Kind::kPointer, sign);
  };
  switch (peek()) {
    case 'r':
    case 'V':
    case 'K':
      return qualified_type();
    case 'P':
      return pointer("*");
    case 'R':
      return pointer("&");
    case 'O':
      return pointer("&&");
    case 'C':
    case 'G': {
      const std::string_view suffix = peek() == 'C' ? " _Complex" : " _Imaginary";
      rest_.remove_prefix(1);
      return about(type(), Kind::kQualified, suffix);
    }
    case 'F':
      return function_type("");
    case 'A':
      return array_type();
    case 'M': {
      rest_.remove_prefix(1);
      const Node* owner = type();
      const Node* member = owner == nullptr ? nullptr : type();
      return member == nullptr ? nullptr : make({.kind = Kind::kMember, .a = owner, .b = member});
    }
    case 'U': {
      rest_.remove_prefix(1);
      const Node* qualifier = source_name();
      if (qualifier != nullptr && peek() == 'I' && !template_arguments(false)) {
        return nullptr;
      }
      const Node* of = qualifier == nullptr ? nullptr : type();
      return of == nullptr ? nullptr : sequence({of, text(" "), qualifier});
    }
    case 'T': {
      if (peek(1) == 's' || peek(1) == 'u' || peek(1) == 'e') {
        rest_.remove_prefix(2);
        return name(nullptr);
      }
      const Node* found = parameter();
      // In the name of a conversion, they belong to the name.
      const bool has_arguments = peek() == 'I' && !allows_forward_;
      return found != nullptr && has_arguments ? with_arguments(remember(found), false) : found;
    }
    case 'S':
      return s_type(is_substitutable);
    case 'D':
      return d_type(is_substitutable);
    case 'u':
      rest_.remove_prefix(1);
      return source_name();
    case 'N':
    case 'Z':
      return name(nullptr);
    default:
      break;
  }
  if (is_digit(peek())) {
    return name(nullptr);
  }
  is_substitutable = false;
  return builtin();
}

const Node* Parser::s_type(bool& is_substitutable) {
  if (peek(1) == 't') {
    return name(nullptr);
  }
  const Node* found = substitution();
  if (found != nullptr && peek() == 'I') {
    return with_arguments(found, false);
  }
  is_substitutable = false;
  return found;
}

const Node* Parser::d_type(bool& is_substitutable) {
  switch (peek(1)) {
    case 'p': {
      rest_.remove_prefix(2);
      return about(type(), Kind::kExpansion);
    }
    case 't':
    case 'T': {
      rest_.remove_prefix(2);
      const Node* value = expression();
      return value == nullptr || !take("E") ? nullptr
                                            : sequence({text("decltype ("), value, text(")")});
    }
    case 'v':
      return vector_type();
    case 'o':
    case 'O':
    case 'w':
    case 'x':
      return function_type("");
    case 'B':
    case 'U': {
      const bool is_unsigned = peek(1) == 'U';
      rest_.remove_prefix(2);
      const std::string_view bits = digits();
      return bits.empty() || !take("_")
                 ? nullptr
                 : sequence({text(is_unsigned ? "unsigned _BitInt(" : "_BitInt("), text(bits),
                             text(")")});
    }
    default:
      is_substitutable = false;
      return builtin();
  }
}

const Node* Parser::qualified_type() {
  const std::string_view qualifier = qualifiers();
  if (peek() == 'F' || (peek() == 'D' && (peek(1) == 'o' || peek(1) == 'O'))) {
    return function_type(qualifier);
  }
  return about(type(), Kind::kQualified, qualifier);
}

const Node* Parser::function_type(std::string_view qualifier) {
  const bool is_noexcept = take("Do");
  if (take("DO")) {
    if (expression() == nullptr || !take("E")) {
      return nullptr;
    }
  } else if (take("Dw") && !list_until("E", &Parser::type)) {
    return nullptr;
  }
  take("Dx");
  if (!take("F")) {
    return nullptr;
  }
  take("Y");  // extern "C"
  Node node{.kind = Kind::kFunction, .text = qualifier};
  if (is_noexcept && qualifier.empty()) {
    node.text = " noexcept";
  }
  node.a = type();
  if (node.a == nullptr) {
    return nullptr;
  }
  while (!take("E")) {
    if (take("v")) {
      continue;
    }
    if (take("RE")) {
      node.text = qualifier == " const" ? " const &" : " &";
      break;
    }
    if (take("OE")) {
      node.text = qualifier == " const" ? " const &&" : " &&";
      break;
    }
    node.list.push_back(type());
    if (node.list.back() == nullptr) {
      return nullptr;
    }
  }
  return make(std::move(node));
}

const Node* Parser::array_type() {
  rest_.remove_prefix(1);
  const Node* size = nullptr;
  if (is_digit(peek())) {
    size = text(digits());
  } else if (peek() != '_') {
    size = expression();
    if (size == nullptr) {
      return nullptr;
    }
  }
  if (!take("_")) {
    return nullptr;
  }
  const Node* element = type();
  return element == nullptr ? nullptr : make({.kind = Kind::kArray, .a = element, .b = size});
}

const Node* Parser::vector_type() {
  rest_.remove_prefix(2);
  const Node* size = nullptr;
  if (take("_")) {
    size = expression();
  } else {
    size = text(digits());
  }
  if (size == nullptr || !take("_")) {
    return nullptr;
  }
  const Node* element = type();
  return element == nullptr ? nullptr : sequence({element, text(" __vector("), size, text(")")});
}

const Node* Parser::parameter() {
  if (!take("T") || peek() == 'L') {
    return nullptr;
  }
  const auto index = discriminator_number();
  if (!index) {
    return nullptr;
  }
  if (in_lambda_) {
    return make({.kind = Kind::kParameter, .number = *index + 1});
  }
  if (*index < arguments_.size() && !allows_forward_) {
    return make({.kind = Kind::kParameter, .a = arguments_[static_cast<std::size_t>(*index)]});
  }
  if (allows_forward_) {
    Node* node = arena_.make({.kind = Kind::kParameter});
    if (node != nullptr) {
      forward_.emplace_back(node, static_cast<std::size_t>(*index));
    }
    return node;
  }
  return nullptr;
}

std::optional<Parser::List> Parser::template_arguments(bool of_function) {
  if (!take("I") || ++depth_ > kMaxTypeDepth) {
    return std::nullopt;
  }
  if (of_function) {
    arguments_.clear();
  }
  const bool outer = std::exchange(allows_forward_, false);
  List list;
  while (!take("E")) {
    const Node* argument = template_argument();
    if (argument == nullptr) {
      return std::nullopt;
    }
    list.push_back(argument);
    if (of_function) {
      arguments_.push_back(argument);
    }
  }
  allows_forward_ = outer;
  --depth_;
  return list;
}

const Node* Parser::template_argument() {
  if (take("J")) {
    auto list = list_until("E", &Parser::template_argument);
    return list ? make({.kind = Kind::kPack, .list = std::move(*list)}) : nullptr;
  }
  if (take("X")) {
    const Node* value = expression();
    return take("E") ? value : nullptr;
  }
  return peek() == 'L' ? literal() : type();
}

/// <expr-primary>
const Node* Parser::literal() {
  if (!take("L")) {
    return nullptr;
  }
  if (take("_Z") || take("Z")) {
    const Node* function = encoding();
    return take("E") ? function : nullptr;
  }
  if (take("b0E")) {
    return text("false");
  }
  if (take("b1E")) {
    return text("true");
  }
  const Node* of = type();
  if (of == nullptr) {
    return nullptr;
  }
  const bool is_negative = take("n");
  const std::size_t end = rest_.find('E');
  if (end == std::string_view::npos) {
    return nullptr;
  }
  const Node* value = text(rest_.substr(0, end));
  rest_.remove_prefix(end + 1);
  const Node* sign = text(is_negative ? "-" : "");
  if (of->kind == Kind::kText) {
    if (of->text == "decltype(nullptr)") {
      return text("nullptr");
    }
    const auto suffix = std::ranges::find(kLiteralSuffixes, of->text, &Code::code);
    if (suffix != kLiteralSuffixes.end()) {
      return sequence({sign, value, text(suffix->text)});
    }
  }
  return sequence({text("("), of, text(")"), sign, value});
}

const Node* Parser::expression() {
  if (++depth_ > kMaxTypeDepth) {
    return nullptr;
  }
  take("gs");
  const Node* found = nullptr;
  if (peek() == 'L') {
    found = literal();
  } else if (peek() == 'T') {
    found = parameter();
  } else if (is_digit(peek()) || rest_.starts_with("sr") || rest_.starts_with("on")) {
    found = unresolved_name();
  } else {
    found = operator_expression();
  }
  --depth_;
  return found;
}

/// OPEN, expressions up to E, CLOSE
const Node* Parser::call(std::string_view open, std::string_view close, const Node* callee) {
  auto list = list_until("E", &Parser::expression);
  return list ? sequence({callee, text(open),
                          make({.kind = Kind::kJoined, .list = std::move(*list)}), text(close)})
              : nullptr;
}

const Node* Parser::operator_expression() {
  for (const Operator& entry : kOperators) {
    if (entry.operands == 0 || !take(entry.code)) {
      continue;
    }
    const std::string_view sign = entry.name.substr(std::string_view("operator").size());
    const Node* first = expression();
    const Node* second = first != nullptr && entry.operands > 1 ? expression() : first;
    const Node* third = second != nullptr && entry.operands > 2 ? expression() : second;
    if (third == nullptr) {
      return nullptr;
    }
    if (entry.operands == 1) {
      return sequence({text(sign), text("("), first, text(")")});
    }
    if (entry.operands == 2) {
      return sequence({text("("), first, text(")"), text(sign), text("("), second, text(")")});
    }
    return sequence({text("("), first, text(")?("), second, text("):("), third, text(")")});
  }
  return named_expression();
}

const Node* Parser::named_expression() {
  const auto around = [this](std::string_view open, const Node* inner, std::string_view close) {
    return sequence({text(open), inner, text(close)});
  };
  if (take("cl")) {
    const Node* callee = expression();
    return callee == nullptr ? nullptr : call("(", ")", callee);
  }
  if (take("cv")) {
    const Node* target = type();
    if (target == nullptr) {
      return nullptr;
    }
    if (take("_")) {
      return call("(", ")", around("(", target, ")"));
    }
    return sequence({text("("), target, text(")("), expression(), text(")")});
  }
  if (take("nw") || take("na")) {
    return new_expression();
  }
  if (take("tl")) {
    const Node* of = type();
    return of == nullptr ? nullptr : call("{", "}", of);
  }
  if (take("il")) {
    return call("{", "}", text(""));
  }
  if (take("dt") || take("pt")) {
    const Node* object = expression();
    return object == nullptr ? nullptr : sequence({object, text("."), unresolved_name()});
  }
  if (take("st")) {
    return around("sizeof (", type(), ")");
  }
  if (take("sz")) {
    return around("sizeof (", expression(), ")");
  }
  if (take("at")) {
    return around("alignof (", type(), ")");
  }
  if (take("nx")) {
    return around("noexcept (", expression(), ")");
  }
  if (take("sp")) {
    return about(expression(), Kind::kExpansion);
  }
  if (take("sZ")) {
    return around("sizeof...(", peek() == 'T' ? parameter() : expression(), ")");
  }
  if (take("fp")) {
    qualifiers();
    if (take("T")) {
      return text("this");
    }
    const std::string_view index = digits();
    return take("_") ? sequence({text("{parm#"), text(index.empty() ? "1" : index), text("}")})
                     : nullptr;
  }
  return nullptr;
}

/// EXPRESSION* "_" TYPE ["pi" EXPRESSION*] "E"
const Node* Parser::new_expression() {
  auto placement = list_until("_", &Parser::expression);
  if (!placement) {
    return nullptr;
  }
  const Node* of = type();
  if (of == nullptr) {
    return nullptr;
  }
  const Node* created = take("pi") ? call("(", ")", of) : (take("E") ? of : nullptr);
  if (placement->empty()) {
    return sequence({text("new "), created});
  }
  const Node* joined = make({.kind = Kind::kJoined, .list = std::move(*placement)});
  return sequence({text("new ("), joined, text(") "), created});
}

/// A name with its template arguments; `scope` before it, or null.
const Node* Parser::unresolved_level(const Node* scope) {
  const Node* level = take("on") ? operator_name(nullptr) : source_name();
  if (level != nullptr && peek() == 'I') {
    level = with_arguments(level, false);
  }
  if (scope == nullptr || level == nullptr) {
    return level;
  }
  return make({.kind = Kind::kNested, .a = scope, .b = level});
}

/// <unresolved-name> and names of functions in expressions.
const Node* Parser::unresolved_name() {
  if (!take("sr")) {
    return unresolved_level(nullptr);
  }
  if (!is_digit(peek())) {
    const Node* scope = type();
    if (scope != nullptr && peek() == 'I') {
      scope = with_arguments(scope, false);
    }
    return scope != nullptr ? unresolved_level(scope) : nullptr;
  }
  // Names of scopes up to E, then a name; or, from older compilers, a class and a name in it.
  const Node* scope = unresolved_level(nullptr);
  const Node* const first = scope;
  unsigned levels = 1;
  while (scope != nullptr && is_digit(peek())) {
    scope = unresolved_level(scope);
    ++levels;
  }
  if (scope != nullptr && peek() == 'E' && (is_digit(peek(1)) || rest_.starts_with("Eon"))) {
    take("E");
    return unresolved_level(scope);
  }
  if (scope != nullptr && levels == 1) {
    remember(first);
    return unresolved_level(first);
  }
  if (levels == 2) {
    remember(first);
    return scope;
  }
  return nullptr;
}

}  // namespace ceems::exporter::profile::itanium
