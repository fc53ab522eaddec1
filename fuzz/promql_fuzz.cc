#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "promql/matcher/matcher.h"
#include "promql/parser.h"
#include "promql/printer.h"
#include "promql/selectors.h"

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
