#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "promql/ast.h"
#include "promql/matcher/matcher.h"
#include "promql/parser.h"
#include "promql/printer.h"
#include "promql/selectors.h"

namespace ceems::promql {
namespace {

bool equal(const Expr& left, const Expr& right);

bool same(const Matcher& left, const Matcher& right) {
  return left.label == right.label && left.op == right.op && left.value == right.value;
}

bool same(const VectorSelector& left, const VectorSelector& right) {
  return left.name == right.name && left.ends == right.ends && left.shift == right.shift &&
         std::ranges::equal(
             left.matchers, right.matchers,
             [](const Matcher& one, const Matcher& other) { return same(one, other); });
}

bool same(const ExprPtr& left, const ExprPtr& right) {
  return (!left && !right) || (left && right && equal(*left, *right));
}

bool same(const NumberLiteral& left, const NumberLiteral& right) {
  return (std::isnan(left.value) && std::isnan(right.value)) ||
         (left.value == right.value && std::signbit(left.value) == std::signbit(right.value));
}

bool same(const std::optional<double>& left, const std::optional<double>& right) {
  return left.has_value() == right.has_value() &&
         (!left || same(NumberLiteral{*left}, NumberLiteral{*right}));
}

bool same(const StringLiteral& left, const StringLiteral& right) {
  return left.value == right.value;
}

bool same(const MatrixSelector& left, const MatrixSelector& right) {
  return left.range == right.range && same(left.selector, right.selector);
}

bool same(const Subquery& left, const Subquery& right) {
  return left.range == right.range && left.step == right.step && left.shift == right.shift &&
         same(left.expr, right.expr);
}

bool same(const Call& left, const Call& right) {
  return left.function == right.function &&
         std::ranges::equal(
             left.arguments, right.arguments,
             [](const ExprPtr& one, const ExprPtr& other) { return same(one, other); });
}

bool same(const Aggregation& left, const Aggregation& right) {
  return left.op == right.op && left.grouping == right.grouping && left.labels == right.labels &&
         same(left.parameter, right.parameter) && same(left.expr, right.expr);
}

bool same(const Binary& left, const Binary& right) {
  return left.op == right.op && left.return_bool == right.return_bool &&
         left.matching == right.matching && same(left.fill_left, right.fill_left) &&
         same(left.fill_right, right.fill_right) && same(left.left, right.left) &&
         same(left.right, right.right);
}

bool same(const Unary& left, const Unary& right) {
  return left.minus == right.minus && same(left.expr, right.expr);
}

bool same(const Paren& left, const Paren& right) {
  return same(left.expr, right.expr);
}

bool equal(const Expr& left, const Expr& right) {
  if (left.type != right.type || left.keep_names != right.keep_names ||
      left.node.index() != right.node.index()) {
    return false;
  }
  return std::visit(
      [&](const auto& node) {
        return same(node, std::get<std::decay_t<decltype(node)>>(right.node));
      },
      left.node);
}

}  // namespace
}  // namespace ceems::promql

// A query that parses is printed as a text that parses to the same tree and prints the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace promql = ceems::promql;
  const std::string_view query(reinterpret_cast<const char*>(data), size);
  const promql::ParseOptions options{.experimental = true};
  auto parsed = promql::parse(query, options);
  if (!parsed) {
    CEEMS_CHECK(parsed.error().offset <= query.size());
    CEEMS_CHECK(!parsed.error().message.empty());
    CEEMS_CHECK(!parsed.error().text().empty());
    return 0;
  }
  const std::string text = promql::print(**parsed);
  const promql::ParseOptions longer{.experimental = true, .max_bytes = std::size_t{1} << 20U};
  const auto again = promql::parse(text, longer);
  CEEMS_CHECK(again.has_value());
  CEEMS_CHECK(promql::equal(**parsed, **again));
  CEEMS_CHECK(promql::print(**again) == text);
  promql::for_each_selector(**parsed, [](promql::VectorSelector& selector) {
    for (const promql::Matcher& matcher : selector.matchers) {
      const auto values = promql::accepted_values(matcher, {.words = 100, .bytes = 4096});
      CEEMS_CHECK(!values || values->size() <= 100);
    }
  });
  return 0;
}
