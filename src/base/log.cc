#include "base/log.h"

#include <atomic>
#include <cstdlib>
#include <iterator>
#include <memory>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/check.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace ceems::log {
namespace {

std::atomic<Level> g_level{Level::kInfo};
std::atomic<Format> g_format{Format::kLogfmt};

/// The only sink of the process: spdlog's locked stderr. Lines arrive complete, so its pattern adds
/// nothing.
spdlog::logger& stderr_logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("ceems",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
    made->set_level(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kDebug:
      return "DEBUG";
    case Level::kInfo:
      return "INFO";
    case Level::kWarn:
      return "WARN";
    case Level::kError:
      break;
  }
  return "ERROR";
}

std::string local_time_text() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  ::localtime_r(&now.tv_sec, &parts);
  const long minutes = parts.tm_gmtoff / 60;
  std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}", parts.tm_year + 1900,
                                 parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                                 parts.tm_sec, now.tv_nsec / 1'000'000);
  if (minutes == 0) {
    return text + "Z";
  }
  const long absolute = minutes < 0 ? -minutes : minutes;
  return text + fmt::format("{}{:02}:{:02}", minutes < 0 ? '-' : '+', absolute / 60, absolute % 60);
}

bool needs_quotes(std::string_view text) {
  return text.empty() || text.find_first_of(" =\"\\\t\r\n") != std::string_view::npos ||
         printable(text, text.size()) != text;
}

/// Quoted as Go has it (strconv.Quote), which readers of logfmt understand.
void append_quoted(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out.append("\\n");
    } else if (c == '\r') {
      out.append("\\r");
    } else if (c == '\t') {
      out.append("\\t");
    } else if (byte < 0x20 || byte == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

/// Bytes that are not UTF-8 are shown as escapes, so that none is lost.
std::string shown(std::string_view value) {
  return is_utf8(value) ? std::string(value) : printable(value, value.size() * 4);
}

std::string render_json(std::initializer_list<Field> first, std::initializer_list<Field> more) {
  std::string line;
  JsonWriter json(line, JsonEscape::kPlain);
  json.begin_object();
  for (const auto& fields : {first, more}) {
    for (const Field& field : fields) {
      json.member(field.key, shown(field.value));
    }
  }
  json.end_object();
  return line;
}

std::string render_logfmt(std::initializer_list<Field> first, std::initializer_list<Field> more) {
  std::string line;
  for (const auto& fields : {first, more}) {
    for (const Field& field : fields) {
      if (!line.empty()) {
        line.push_back(' ');
      }
      line.append(field.key).push_back('=');
      const std::string value = shown(field.value);
      if (needs_quotes(value)) {
        append_quoted(line, value);
      } else {
        line.append(value);
      }
    }
  }
  return line;
}

}  // namespace

Result<Level> parse_level(std::string_view text) {
  const std::string lower = to_lower(text);
  if (lower == "debug") {
    return Level::kDebug;
  }
  if (lower == "info") {
    return Level::kInfo;
  }
  if (lower == "warn") {
    return Level::kWarn;
  }
  if (lower == "error") {
    return Level::kError;
  }
  return fail(ErrorCode::kInvalidArgument,
              "expected a log level (debug, info, warn, error), got '{}'", printable(text));
}

Result<Format> parse_format(std::string_view text) {
  if (text == "logfmt") {
    return Format::kLogfmt;
  }
  if (text == "json") {
    return Format::kJson;
  }
  return fail(ErrorCode::kInvalidArgument, "expected a log format (logfmt, json), got '{}'",
              printable(text));
}

void configure(Level level, Format format) {
  g_level = level;
  g_format = format;
}

Result<> configure(std::string_view level, std::string_view format) {
  CEEMS_TRY_IN("--log.level", known_level, parse_level(level));
  CEEMS_TRY_IN("--log.format", known_format, parse_format(format));
  configure(known_level, known_format);
  return {};
}

bool enabled(Level level) {
  return level >= g_level.load(std::memory_order_relaxed);
}

std::string render(Format format,
                   std::string_view time,
                   Level level,
                   std::string_view source,
                   std::string_view message,
                   std::initializer_list<Field> fields) {
  const std::initializer_list<Field> first = {
      {"time", time}, {"level", level_name(level)}, {"source", source}, {"msg", message}};
  return format == Format::kJson ? render_json(first, fields) : render_logfmt(first, fields);
}

void write(Level level,
           std::string_view message,
           std::initializer_list<Field> fields,
           std::source_location where) {
  if (!enabled(level)) {
    return;
  }
  std::string_view file = where.file_name();
  file.remove_prefix(file.rfind('/') + 1);
  const std::string line = render(g_format, local_time_text(), level,
                                  fmt::format("{}:{}", file, where.line()), message, fields);
  stderr_logger().log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace ceems::log

namespace ceems {

void check_failed(const char* expression, const char* file, int line) {
  log::error("broken invariant", {{"check", expression}, {"file", file}, {"line", line}});
  std::abort();
}

}  // namespace ceems
