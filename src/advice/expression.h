#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "advice/value.h"
#include "base/result.h"

namespace ceems::advice {

/// An expression of the rule language, compiled to a tree (docs/report.md, "Rule language").
///
///   expression := and ("||" and)*            comparison := sum [("<"|"<="|">"|">="|"=="|"!=") sum]
///   and        := not ("&&" not)*            sum        := product (("+"|"-") product)*
///   not        := "!" not | comparison       product    := sign (("*"|"/") sign)*
///   sign       := "-" sign | primary
///   primary    := number | 'text' | "true" | "false" | name | function | "(" expression ")"
///
/// Functions: min, max (one argument or more), abs, ceil, round_mem, round_time, known, and
/// if(condition, then[, else]), which is unknown where it has no part to give.
///
/// Three-valued: an operation on something unknown, on the wrong type, or without a finite result
/// is unknown; but `false && unknown` is false and `true || unknown` is true. There are no loops
/// and no assignment, so evaluation ends after at most kMaxNodes steps. It cannot fail and does not
/// allocate.
class Expression {
 public:
  static constexpr std::size_t kMaxNodes = 1000;
  static constexpr std::size_t kMaxDepth = 64;
  static constexpr std::size_t kMaxLength = 8192;  ///< of the text, in bytes

  Expression() = default;  ///< unknown

  /// kInvalidArgument with the column of the mistake: "column 8: expected a value".
  static Result<Expression> compile(std::string_view text);

  [[nodiscard]] Value evaluate(const Names& names) const;
  /// The names that the expression reads, each once, sorted.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

 private:
  friend class ExpressionParser;

  enum class Kind : std::uint8_t {
    kNumber,
    kText,
    kTruth,
    kName,
    kNegative,
    kNot,
    kAnd,
    kOr,
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual,
    kEqual,
    kNotEqual,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kMin,
    kMax,
    kAbs,
    kCeil,
    kRoundMem,
    kRoundTime,
    kKnown,
    kIf,      ///< left: condition, right: kBranch
    kBranch,  ///< left: then, right: else; only below kIf
  };
  struct Node {
    Kind kind = Kind::kNumber;
    std::uint16_t left = 0, right = 0;  ///< indexes of the operands, which come before the node
    double number = 0;                  ///< also the truth of kTruth
    std::string text = {};              ///< of kText and kName
  };

  [[nodiscard]] Value value_at(std::size_t index, const Names& names) const;
  [[nodiscard]] Value logic(const Node& node, const Names& names) const;
  [[nodiscard]] Value choice(const Node& node, const Names& names) const;

  std::vector<Node> nodes_;  ///< operands first; the last one is the root
};

/// Rounds a number of bytes up to what people type: up to 30 GiB to whole GiB, up to 100 GiB to 5,
/// up to 1,000 GiB to 10, above to 100.
double round_mem(double bytes);
/// Rounds a number of seconds up: up to 2 h to 15 min, up to 12 h to 1 h, up to 3 d to 6 h, above
/// to whole days.
double round_time(double seconds);

}  // namespace ceems::advice
