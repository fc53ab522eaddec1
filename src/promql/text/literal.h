#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ceems::promql {

// Literals of PromQL (https://prometheus.io/docs/prometheus/latest/querying/basics/#literals), from
// text to value and back. Pure functions.

/// A decimal number, a C-like octal integer ("010" is 8), a hexadecimal integer, "Inf" or "NaN" in
/// any case; single underscores between digits are skipped. Nothing for any other text.
std::optional<double> parse_number(std::string_view text);
/// The shortest text that parse_number reads as the same value; "Inf" and "NaN" by these names.
void append_number(std::string& out, double value);

/// "1h30m": whole numbers with y, w, d, h, m, s, ms, each unit at most once, the biggest first.
/// Milliseconds, at most 292 years. Nothing for any other text.
std::optional<std::int64_t> parse_duration_ms(std::string_view text);
/// The same for a number of seconds (Prometheus 3); whole milliseconds only.
std::optional<std::int64_t> duration_ms_of_seconds(double seconds);
/// "1d2h": a text that parse_duration_ms reads as the same; `milliseconds` must not be negative.
void append_duration(std::string& out, std::int64_t milliseconds);

/// The value of a quoted string, quotes included: "…" and '…' with the escapes of Go, `…` without
/// any. A value is bytes: "\xff" is no UTF-8. Nothing where a quote, an escape or the end is wrong.
std::optional<std::string> unquote(std::string_view quoted);
/// In double quotes, printable ASCII and valid UTF-8 as they are, all else escaped, so that
/// unquote() gives the same bytes.
void append_quoted(std::string& out, std::string_view value);

/// [a-zA-Z_][a-zA-Z0-9_]*
bool is_plain_label(std::string_view name);
/// [a-zA-Z_:][a-zA-Z0-9_:]*
bool is_plain_metric(std::string_view name);

}  // namespace ceems::promql
