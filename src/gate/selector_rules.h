#pragma once

#include <string_view>

#include "gate/request.h"
#include "promql/ast.h"

namespace ceems::gate {

// What selectors of users may not hold, whatever units they name: texts that some servers take for
// more than a selector.

/// Would the matcher mean the same when its value is written between double quotes as it is,
/// without escapes? Pyroscope's second read path writes selectors so before
/// https://github.com/grafana/pyroscope/pull/4496. False for quotes, control characters, what is no
/// UTF-8, and backslashes; of patterns those backslashes will do that are no escape in a string
/// ("\."): there the server refuses the text instead of reading another one.
bool survives_raw(const promql::Matcher& matcher);
/// The same for a text that is no pattern.
bool survives_raw(std::string_view text);
/// A name that is no more than a name where it is written without quotes.
bool is_raw_name(std::string_view name);

/// May the matcher of `__name__` name a metric that begins with "__", which is the server's own?
/// Mimir's `__embedded_queries__` is known by the text of the value alone, under every operator. A
/// pattern with few words is judged by these. Of others it is refused when "__" stands where a name
/// may begin; what spells the same otherwise ("_{2}x.*") no server takes for that name.
bool may_name_internal(const promql::Matcher& matcher);

Refusal raw_text();                              ///< 400
Refusal internal_label(std::string_view label);  ///< 403

}  // namespace ceems::gate
