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

/// "debug", "info", "warn", "error" in any case; else kInvalidArgument.
Result<Level> parse_level(std::string_view text);
/// "logfmt" or "json", exactly; else kInvalidArgument.
Result<Format> parse_format(std::string_view text);

/// One key=value of a line. Values are formatted with {fmt}; they never hold secrets.
struct Field {
  std::string_view key;
  std::string value;

  template <typename T>
  Field(std::string_view k, const T& v) : key(k), value(fmt::format("{}", v)) {}
};

/// Sends lines to stderr in this form from now on. Before the first call: info, logfmt.
void configure(Level level, Format format);
/// The same with the texts of --log.level and --log.format, which errors name.
Result<> configure(std::string_view level, std::string_view format);

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

/// The text write() sends, without the line end. For tests and for sinks of other kinds.
std::string render(Format format,
                   std::string_view time,
                   Level level,
                   std::string_view source,
                   std::string_view message,
                   std::initializer_list<Field> fields);

}  // namespace ceems::log
