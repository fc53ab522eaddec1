#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ceems::promql {

// The syntax tree of a query (https://prometheus.io/docs/prometheus/latest/querying/basics/).
// Times are in milliseconds. A tree owns its nodes. Two trees are equal if they print to the same
// text: offsets in the query are ignored, and NaN equals NaN.

enum class ValueType : std::uint8_t { kScalar, kString, kInstantVector, kRangeVector };
/// "scalar", "string", "instant vector", "range vector"
std::string_view type_name(ValueType type);

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

enum class MatchOperator : std::uint8_t { kEqual, kNotEqual, kMatches, kNotMatches };

struct Matcher {
  std::string label;
  MatchOperator op = MatchOperator::kEqual;
  std::string value;       ///< literal, or a valid RE2 pattern
  std::size_t offset = 0;  ///< of the label in the query
  std::size_t value_offset = 0;
};

/// "@ 1609746000", "@ start()", "@ end()"
struct AtModifier {
  enum class Kind : std::uint8_t { kTime, kStart, kEnd };
  Kind kind = Kind::kTime;
  std::int64_t time_ms = 0;  ///< of kTime
  bool operator==(const AtModifier&) const = default;
};

/// A range, step or offset: "5m", or an expression such as "5m * 2" and "max_of(step(), 1m)".
struct Duration {
  std::optional<std::int64_t> ms;  ///< nothing: depends on the step or the times of the request
  std::string text;                ///< canonical text of an expression; empty for a literal
  bool operator==(const Duration&) const = default;
};

/// "offset 5m" and "@ …" after a selector or subquery.
struct TimeShift {
  std::optional<Duration> offset;  ///< into the past; may be negative
  std::optional<AtModifier> at;
  bool operator==(const TimeShift&) const = default;
};

struct NumberLiteral {
  double value = 0;
};

struct StringLiteral {
  std::string value;
};

/// "anchored" and "smoothed": values at the ends of a range, from samples outside it.
enum class Ends : std::uint8_t { kPlain, kAnchored, kSmoothed };

/// name{matchers} offset … @ …
struct VectorSelector {
  std::string name;  ///< empty: not given before the braces; there may be a matcher of __name__
  std::vector<Matcher> matchers;
  Ends ends = Ends::kPlain;
  TimeShift shift;
  std::size_t offset = 0;  ///< in the query
};

/// selector[range]. Offset and "@" are in the selector's shift.
struct MatrixSelector {
  VectorSelector selector;
  Duration range;
};

/// expression[range:step]
struct Subquery {
  ExprPtr expr;
  Duration range;
  std::optional<Duration> step;  ///< none: the server's evaluation interval
  TimeShift shift;
};

struct Function;  // functions.h

enum class AggregateOperator : std::uint8_t {
  kSum,
  kAvg,
  kCount,
  kMin,
  kMax,
  kGroup,
  kStddev,
  kStdvar,
  kTopk,
  kBottomk,
  kCountValues,
  kQuantile,
  kLimitk,
  kLimitRatio,
};

enum class Grouping : std::uint8_t { kNone, kBy, kWithout };

struct Call {
  const Function* function = nullptr;  ///< lives as long as the program
  std::vector<ExprPtr> arguments;
  Grouping grouping = Grouping::kNone;  ///< of the aggregations that only MetricsQL has
  std::vector<std::string> labels;
};

struct Aggregation {
  AggregateOperator op = AggregateOperator::kSum;
  ExprPtr parameter;  ///< null if the operator has none
  ExprPtr expr;
  Grouping grouping = Grouping::kNone;
  std::vector<std::string> labels;
};

enum class BinaryOperator : std::uint8_t {
  kDefault,  // of MetricsQL, as are the next two
  kIf,
  kIfNot,
  kOr,
  kAnd,
  kUnless,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kTrimUpper,
  kTrimLower,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kAtan2,
  kPow,
};

/// on(…)/ignoring(…) group_left(…)/group_right(…)
struct VectorMatching {
  enum class Group : std::uint8_t { kOneToOne, kLeft, kRight };
  bool on = false;  ///< false: ignoring
  std::vector<std::string> labels;
  Group group = Group::kOneToOne;
  std::vector<std::string> include;  ///< labels copied from the "one" side
  bool operator==(const VectorMatching&) const = default;
};

struct Binary {
  BinaryOperator op = BinaryOperator::kAdd;
  ExprPtr left;
  ExprPtr right;
  bool return_bool = false;
  std::optional<VectorMatching> matching;  ///< between two vectors only
  std::optional<double> fill_left;         ///< values of missing series, likewise
  std::optional<double> fill_right;
};

/// +x or -x, where x is not a number: signs of numbers are part of the literal.
struct Unary {
  bool minus = false;
  ExprPtr expr;
};

struct Paren {
  ExprPtr expr;
};

struct Expr {
  using Node = std::variant<NumberLiteral,
                            StringLiteral,
                            VectorSelector,
                            MatrixSelector,
                            Subquery,
                            Call,
                            Aggregation,
                            Binary,
                            Unary,
                            Paren>;
  Node node;
  ValueType type = ValueType::kScalar;
  std::size_t offset = 0;   ///< of its start in the query, in bytes
  unsigned depth = 1;       ///< of this tree, at least 1
  bool keep_names = false;  ///< "keep_metric_names" of MetricsQL
};

}  // namespace ceems::promql
