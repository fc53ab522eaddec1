#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ceems {

/// A time such as "2025-07-07T08:56:58Z", with fraction and offset or without (RFC 3339 §5.6), in
/// epoch milliseconds. Nothing on anything else and before 1970.
std::optional<std::int64_t> parse_rfc3339_ms(std::string_view text);

}  // namespace ceems
