#pragma once

#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/result.h"

namespace ceems::log {

enum class Level { kDebug, kInfo, kWarn, kError };
enum class Format { kLogfmt, kJson };

/// Parses "debug", "info", "warn" or "error" in any case; anything else is kInvalidArgument.
Result<Level> parse_level(std::string_view text);
/// Parses "logfmt" or "json", case-sensitively; anything else is kInvalidArgument.
Result<Format> parse_format(std::string_view text);

/// One key=value of a line. Values are formatted with {fmt} and must not hold secrets.
struct Field {
  std::string_view key;
  std::string value;

  template <typename T>
  Field(std::string_view k, const T& v) : key(k), value(fmt::format("{}", v)) {}
};

/// Sets the level and format of all later lines. Before the first call they are info and logfmt.
void configure(Level level, Format format);
/// The same with the values of --log.level and --log.format. Errors name the flag.
Result<> configure(std::string_view level, std::string_view format);

/// Whether lines of this level are written.
[[nodiscard]] bool enabled(Level level);

/// Writes one line: time (RFC 3339, milliseconds, local zone), level (DEBUG, INFO, WARN, ERROR),
/// source (file:line), msg, then the fields in order. Safe for concurrent use; lines never mix.
void write(Level level,
           std::string_view message,
           std::initializer_list<Field> fields,
           std::source_location where);

inline void debug(std::string_view message,
                  std::initializer_list<Field> fields = {},
                  std::source_location where = std::source_location::current()) {
  if (enabled(Level::kDebug)) {
    write(Level::kDebug, message, fields, where);
  }
}
inline void info(std::string_view message,
                 std::initializer_list<Field> fields = {},
                 std::source_location where = std::source_location::current()) {
  write(Level::kInfo, message, fields, where);
}
inline void warn(std::string_view message,
                 std::initializer_list<Field> fields = {},
                 std::source_location where = std::source_location::current()) {
  write(Level::kWarn, message, fields, where);
}
inline void error(std::string_view message,
                  std::initializer_list<Field> fields = {},
                  std::source_location where = std::source_location::current()) {
  write(Level::kError, message, fields, where);
}

/// The line that write() sends, without the line end. For tests and other kinds of sinks.
std::string render(Format format,
                   std::string_view time,
                   Level level,
                   std::string_view source,
                   std::string_view message,
                   std::initializer_list<Field> fields);

}  // namespace ceems::log
