#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/profile/symbol/demangle/itanium_node.h"

namespace ceems::exporter::profile::itanium {

struct Operator {
  std::string_view code;
  std::string_view name;  ///< "operator+"
  unsigned operands = 0;  ///< in expressions; 0: not supported there
};
inline constexpr std::array kOperators = {
    Operator{"nw", "operator new"},      Operator{"na", "operator new[]"},
    Operator{"dl", "operator delete"},   Operator{"da", "operator delete[]"},
    Operator{"aw", "operator co_await"}, Operator{"ps", "operator+", 1},
    Operator{"ng", "operator-", 1},      Operator{"ad", "operator&", 1},
    Operator{"de", "operator*", 1},      Operator{"co", "operator~", 1},
    Operator{"pl", "operator+", 2},      Operator{"mi", "operator-", 2},
    Operator{"ml", "operator*", 2},      Operator{"dv", "operator/", 2},
    Operator{"rm", "operator%", 2},      Operator{"an", "operator&", 2},
    Operator{"or", "operator|", 2},      Operator{"eo", "operator^", 2},
    Operator{"aS", "operator=", 2},      Operator{"pL", "operator+="},
    Operator{"mI", "operator-="},        Operator{"mL", "operator*="},
    Operator{"dV", "operator/="},        Operator{"rM", "operator%="},
    Operator{"aN", "operator&="},        Operator{"oR", "operator|="},
    Operator{"eO", "operator^="},        Operator{"ls", "operator<<", 2},
    Operator{"rs", "operator>>", 2},     Operator{"lS", "operator<<="},
    Operator{"rS", "operator>>="},       Operator{"eq", "operator==", 2},
    Operator{"ne", "operator!=", 2},     Operator{"lt", "operator<", 2},
    Operator{"gt", "operator>", 2},      Operator{"le", "operator<=", 2},
    Operator{"ge", "operator>=", 2},     Operator{"ss", "operator<=>", 2},
    Operator{"nt", "operator!", 1},      Operator{"aa", "operator&&", 2},
    Operator{"oo", "operator||", 2},     Operator{"pp", "operator++"},
    Operator{"mm", "operator--"},        Operator{"cm", "operator,", 2},
    Operator{"pm", "operator->*"},       Operator{"pt", "operator->"},
    Operator{"cl", "operator()"},        Operator{"ix", "operator[]"},
    Operator{"qu", "operator?", 3}};

/// Recursive descent over a mangled name. Functions return null for malformed input, and then the
/// parser is of no use any more. Nesting is bounded.
class Parser {
 public:
  Parser(std::string_view mangled, Arena& arena) : rest_(mangled), arena_(arena) {}

  const Node* whole();

 private:
  using List = std::vector<const Node*>;

  /// What the name of a function says about the rest of it.
  struct NameState {
    bool ends_with_arguments = false;
    bool has_no_result = false;  ///< constructors, destructors and conversions
    std::string_view qualifiers = {};
  };

  // Names.
  const Node* encoding();
  const Node* special_name();
  const Node* thunk();
  const Node* name(NameState* state);
  const Node* nested_name(NameState* state);
  const Node* nested_component(const Node* scope, NameState* state, bool& in_substitution);
  const Node* local_name(NameState* state);
  const Node* unqualified_name(const Node* scope, NameState* state);
  const Node* constructor(const Node* scope, NameState* state);
  const Node* with_tags(const Node* node);
  const Node* operator_name(NameState* state);
  const Node* source_name();
  const Node* unnamed();
  const Node* lambda();
  const Node* substitution();

  // Types.
  const Node* type();
  const Node* type_without_substitution(bool& is_substitutable);
  const Node* d_type(bool& is_substitutable);
  const Node* builtin();
  const Node* s_type(bool& is_substitutable);
  const Node* qualified_type();
  const Node* function_type(std::string_view qualifiers);
  const Node* array_type();
  const Node* vector_type();
  const Node* parameter();

  // Arguments and expressions.
  std::optional<List> template_arguments(bool of_function);
  const Node* template_argument();
  const Node* literal();
  const Node* expression();
  const Node* operator_expression();
  const Node* named_expression();
  const Node* new_expression();
  const Node* unresolved_name();
  const Node* unresolved_level(const Node* scope);
  const Node* call(std::string_view open, std::string_view close, const Node* callee);

  // Helpers.
  const Node* make(Node node);
  const Node* text(std::string_view text) {
    return make({.kind = Node::Kind::kText, .text = text});
  }
  /// A node about another one, or null without that.
  const Node* about(const Node* of, Node::Kind kind, std::string_view text = {}) {
    return of == nullptr ? nullptr : make({.kind = kind, .text = text, .a = of});
  }
  const Node* sequence(List list);
  /// What `parse` reads until `end`; nothing if it fails.
  std::optional<List> list_until(std::string_view end, const Node* (Parser::*parse)());
  const Node* with_arguments(const Node* of, bool of_function);
  bool take(std::string_view expected);
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return ahead < rest_.size() ? rest_[ahead] : '\0';
  }
  std::string_view digits();
  std::optional<std::uint64_t> number();
  std::optional<std::uint64_t> discriminator_number();
  const Node* remember(const Node* node);
  std::string_view qualifiers();

  std::string_view rest_;
  Arena& arena_;
  List substitutions_;
  List arguments_;  ///< of the function, which T_ refers to
  /// Parameters that came before their arguments, in the names of conversion operators.
  std::vector<std::pair<Node*, std::size_t>> forward_;
  unsigned depth_ = 0;
  bool in_lambda_ = false;
  bool allows_forward_ = false;
};

}  // namespace ceems::exporter::profile::itanium
