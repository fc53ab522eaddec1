#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ceems::promql {

// Literals of PromQL (https://prometheus.io/docs/prometheus/latest/querying/basics/#literals), from
// from text to value and back. Pure functions.

/// A decimal number, a C-like octal integer ("010" is 8), a hexadecimal integer, "Inf" or "NaN" in
/// any case. Single underscores between digits are ignored. Nothing for any other text, nor for
/// numbers that only seem to be octal ("08", "00.5"), of which servers make different things.
std::optional<double> parse_number(std::string_view text);
/// The shortest text that parse_number() reads as the same value; "Inf" and "NaN" for these.
void append_number(std::string& out, double value);

/// "1h30m": integers with y, w, d, h, m, s, ms, each unit at most once, in descending order.
/// Milliseconds, at most 292 years. Nothing for any other text.
std::optional<std::int64_t> parse_duration_ms(std::string_view text);
/// The same for a number of seconds (Prometheus 3); whole milliseconds only.
std::optional<std::int64_t> duration_ms_of_seconds(double seconds);
/// "5i": a whole number of steps of a query, in MetricsQL.
bool is_steps(std::string_view text);
/// "1d2h": a text that parse_duration_ms reads as the same; `milliseconds` must not be negative.
void append_duration(std::string& out, std::int64_t milliseconds);

/// The value of a string given with its quotes: "…" and '…' with the escapes of Go, `…` without
/// any. The value need not be UTF-8 ("\xff"). Nothing if a quote, an escape or the end is invalid.
std::optional<std::string> unquote(std::string_view quoted);
/// The text in double quotes. Everything except printable ASCII and valid UTF-8 is escaped, so that
/// unquote() returns the same bytes.
void append_quoted(std::string& out, std::string_view value);

/// [a-zA-Z_][a-zA-Z0-9_]*
bool is_plain_label(std::string_view name);
/// [a-zA-Z_:][a-zA-Z0-9_:]*
bool is_plain_metric(std::string_view name);

}  // namespace ceems::promql
