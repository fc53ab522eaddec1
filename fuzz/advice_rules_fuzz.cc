#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "advice/expression.h"
#include "advice/judge.h"
#include "advice/rule.h"
#include "advice/template.h"
#include "base/check.h"

// A site writes rules, and facts come from jobs. Any text is an error or a tree whose evaluation
// ends with a value; the same for templates and whole files.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ceems::advice;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Facts facts;
  facts.set("runtime", 3600);
  facts.set("state", "COMPLETED");
  facts.set("coverage", 1.0);
  facts.set("cpu.eff", 0.5);
  facts.set("interactive", false);
  if (const auto expression = Expression::compile(text)) {
    CEEMS_CHECK(expression->size() <= Expression::kMaxNodes);
    const Value value = expression->evaluate(facts);
    if (const double* number = std::get_if<double>(&value)) {
      CEEMS_CHECK(std::isfinite(*number));
    }
  }
  if (placeholders(text)) {
    (void)fill(text, facts);
  }
  if (const auto rules = add_rules({}, text, "fuzz.yml")) {
    (void)judge(*rules, {.facts = facts, .earlier = {facts, facts}});
  }
  return 0;
}
