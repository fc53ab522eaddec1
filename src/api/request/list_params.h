#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/request/params.h"
#include "base/result.h"
#include "store/facts.h"

namespace ceems::api {

// The parameters of lists and sums over units (docs/api/lists.md). All errors are kInvalidArgument
// with a text for clients that names the parameter.

/// A question about more units is refused: choose a shorter period.
inline constexpr std::int64_t kMaxUnits = 2'000'000;

/// The states that `state=failed` stands for, as stored.
std::vector<std::string> failed_states();

/// The period from `from` (default: 30 days before `to`) to `to` (default: now), of at most 400
/// days.
Result<store::TimeRange> parse_days(const Params& params, std::int64_t now_ms);

/// What the parameters select. Owners and names are left to access/lists.h. `window` is that of the
/// call.
Result<store::FactFilter> parse_fact_filter(const Params& params,
                                            const std::optional<store::TimeRange>& window);

/// Whether only the period, user, project and cluster are asked for, which indexes know.
bool is_indexed(const store::FactFilter& filter);

/// A column of a list; `cost` is computed from others.
struct ListColumn {
  std::string_view name;
  std::optional<store::Fact> fact = {};  ///< nothing: the cost
};
std::vector<ListColumn> all_list_columns();

struct ListOptions {
  std::vector<ListColumn> columns = {};
  store::Fact sort = store::Fact::kEnded;
  bool descending = true;
  std::size_t limit = 100;
  bool csv = false;
};
Result<ListOptions> parse_list_options(const Params& params);

/// A position in the list that `listing` names, and the direction in which the page lies.
struct ListCursor {
  store::FactPlace place = {};
  bool backwards = false;
};
std::string list_cursor_text(std::string_view listing, const ListCursor& cursor);
/// Nothing if there is none.
Result<std::optional<ListCursor>> parse_list_cursor(const Params& params, std::string_view listing);

/// A number of `unit` in "a..b", "a..", "..b" or "a", in whole parts of it.
Result<store::FactRange> parse_range(std::string_view name,
                                     std::string_view text,
                                     store::Fact fact,
                                     double parts);

/// A whole number from `least` to `most`; `otherwise` if the text is empty.
Result<std::size_t> parse_number(std::string_view name,
                                 std::string_view text,
                                 std::size_t least,
                                 std::size_t most,
                                 std::size_t otherwise);

}  // namespace ceems::api
