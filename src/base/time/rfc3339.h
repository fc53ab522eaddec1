#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ceems {

/// Parses a time such as "2025-07-07T08:56:58Z", with an optional fraction and any offset (RFC 3339
/// §5.6), into epoch milliseconds. Nothing on any other text and before 1970.
std::optional<std::int64_t> parse_rfc3339_ms(std::string_view text);

}  // namespace ceems
