#include "cacct/series/dump_progress.h"

#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/strings.h"

namespace ceems::cacct {
namespace {

constexpr std::string_view kVersion = "1";

template <typename Int>
bool read_int(JsonScanner& json, Int& value) {
  const auto number = parse_int<Int>(json.number());
  value = number.value_or(0);
  return number.has_value();
}

bool read_series(JsonScanner& json, WrittenSeries& series) {
  return each_member(json, [&](const std::string& name) {
    if (name == "bytes") {
      return read_int(json, series.bytes);
    }
    if (name == "item") {
      return read_int(json, series.item);
    }
    if (name == "last_ms") {
      return read_int(json, series.last_ms);
    }
    return name == "labels" && each_member(json, [&](const std::string& label) {
             return json.string(series.labels[label]);
           });
  });
}

bool read_failed(JsonScanner& json, std::vector<std::string>& failed) {
  if (!json.take('[')) {
    return false;
  }
  for (bool first = true; !json.take(']'); first = false) {
    if ((!first && !json.take(',')) || !json.string(failed.emplace_back())) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string fingerprint(const SeriesLabels& labels) {
  std::uint64_t hash = 14695981039346656037U;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    }
    hash = (hash ^ 0xFFU) * 1099511628211U;
  };
  for (const auto& [name, value] : labels) {
    add(name);
    add(value);
  }
  return fmt::format("{:016x}", hash);
}

std::string to_json(const DumpProgress& progress) {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object()
      .member("version", kVersion)
      .member("key", progress.key)
      .member("item", static_cast<std::int64_t>(progress.item))
      .member("next_ms", progress.next_ms)
      .member("samples", static_cast<std::int64_t>(progress.samples));
  json.key("failed").begin_array();
  for (const std::string& line : progress.failed) {
    json.value(line);
  }
  json.end_array().key("series").begin_object();
  for (const auto& [name, series] : progress.series) {
    json.key(name)
        .begin_object()
        .member("item", static_cast<std::int64_t>(series.item))
        .member("bytes", static_cast<std::int64_t>(series.bytes))
        .member("last_ms", series.last_ms);
    json.key("labels").begin_object();
    for (const auto& [label, value] : series.labels) {
      json.member(label, value);
    }
    json.end_object().end_object();
  }
  json.end_object().end_object();
  return out + '\n';
}

Result<DumpProgress> parse_progress(std::string_view text) {
  JsonScanner json(text);
  DumpProgress progress;
  std::string version;
  const bool read = each_member(json, [&](const std::string& name) {
    if (name == "version") {
      return json.string(version);
    }
    if (name == "key") {
      return json.string(progress.key);
    }
    if (name == "item") {
      return read_int(json, progress.item);
    }
    if (name == "next_ms") {
      return read_int(json, progress.next_ms);
    }
    if (name == "samples") {
      return read_int(json, progress.samples);
    }
    if (name == "failed") {
      return read_failed(json, progress.failed);
    }
    return name == "series" && each_member(json, [&](const std::string& fingerprint) {
             return read_series(json, progress.series[fingerprint]);
           });
  });
  if (!read || !json.at_end() || version != kVersion) {
    return fail(ErrorCode::kParse, "not the progress of a dump");
  }
  return progress;
}

}  // namespace ceems::cacct
