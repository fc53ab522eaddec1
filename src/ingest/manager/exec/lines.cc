#include "ingest/manager/exec/lines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <boost/json.hpp>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/strings.h"
#include "base/time/rfc3339.h"
#include "base/time/time_text.h"
#include "base/utf8.h"
#include "config/spelling.h"
#include "ingest/manager/unit_fields.h"

namespace ceems::ingest {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 16;
constexpr std::size_t kMaxIdBytes = 256;
constexpr double kMaxNumber = 1e15;
constexpr double kMaxSeconds = 253'402'300'799;  // the end of the year 9999

std::unexpected<Error> wrong(std::string_view key, std::string_view expected) {
  return fail(ErrorCode::kParse, "{}: expected {}", key, expected);
}

/// Reads the members of one object. The first error is kept for done().
class Members {
 public:
  explicit Members(const json::object& object) : object_(object) {}

  Members& text(std::string_view key, std::string& target) {
    known_.push_back(key);
    const json::value* value = find(key);
    if (value == nullptr) {
      return *this;
    }
    if (const auto* string = value->if_string()) {
      target = clean_text({string->data(), string->size()});
    } else if (value->is_int64() || value->is_uint64()) {
      target = json::serialize(*value);
    } else {
      keep(wrong(key, "a text").error());
    }
    return *this;
  }
  Members& number(std::string_view key, double& target) {
    known_.push_back(key);
    const json::value* value = find(key);
    boost::system::error_code error;
    const double number = value == nullptr ? target : value->to_number<double>(error);
    if (error || !(number >= 0 && number <= kMaxNumber)) {
      keep(wrong(key, "a number that is not negative").error());
    } else {
      target = number;
    }
    return *this;
  }
  /// Epoch seconds, or a text of RFC 3339. Null and 0 mean that there is no such time.
  Members& time(std::string_view key, std::int64_t& target) {
    known_.push_back(key);
    const json::value* value = find(key);
    if (value == nullptr) {
      return *this;
    }
    if (const auto* string = value->if_string()) {
      const auto time = parse_rfc3339_ms({string->data(), string->size()});
      if (!time) {
        keep(wrong(key, "epoch seconds or a time such as 2026-01-01T00:00:00Z").error());
      }
      target = time.value_or(0);
      return *this;
    }
    boost::system::error_code error;
    const double seconds = value->to_number<double>(error);
    if (error || !(seconds >= 0 && seconds <= kMaxSeconds)) {
      keep(wrong(key, "epoch seconds or a time such as 2026-01-01T00:00:00Z").error());
    } else {
      target = std::llround(seconds * 1000);
    }
    return *this;
  }
  Members& texts(std::string_view key, std::vector<std::string>& target) {
    known_.push_back(key);
    const json::value* value = find(key);
    if (value == nullptr) {
      return *this;
    }
    const auto* array = value->if_array();
    if (array == nullptr) {
      keep(wrong(key, "a list of texts").error());
      return *this;
    }
    for (const json::value& item : *array) {
      const auto* string = item.if_string();
      if (string == nullptr || string->empty()) {
        keep(wrong(key, "a list of texts").error());
        return *this;
      }
      target.push_back(clean_text({string->data(), string->size()}));
    }
    return *this;
  }
  Members& object(std::string_view key, std::string& target) {
    known_.push_back(key);
    const json::value* value = find(key);
    if (value == nullptr) {
      return *this;
    }
    std::string text;
    if (!append_json_object(text, json::serialize(*value))) {
      keep(wrong(key, "an object").error());
    } else {
      target = std::move(text);
    }
    return *this;
  }
  Members& require(bool there, std::string_view key, std::string_view expected) {
    if (!there) {
      keep(wrong(key, expected).error());
    }
    return *this;
  }

  /// Also fails for members that were not read.
  Result<> done() {
    for (const auto& member : object_) {
      const std::string_view key(member.key().data(), member.key().size());
      if (std::ranges::find(known_, key) == known_.end()) {
        const std::string_view near = config::nearest(key, known_);
        return fail(ErrorCode::kParse, "{}: unknown member{}", printable(key),
                    near.empty() ? "" : fmt::format(", did you mean '{}'?", near));
      }
    }
    return error_ ? Result<>(fail(*error_)) : Result<>();
  }

 private:
  [[nodiscard]] const json::value* find(std::string_view key) const {
    const json::value* value = object_.if_contains({key.data(), key.size()});
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  void keep(Error error) {
    if (!error_) {
      error_ = std::move(error);
    }
  }

  const json::object& object_;
  std::vector<std::string_view> known_;
  std::optional<Error> error_;
};

Result<> read_unit(const json::object& object, ExecLines& lines) {
  ExecUnit unit;
  Members members(object);
  members.text("unit", unit.id)
      .text("name", unit.name)
      .text("user", unit.user)
      .text("group", unit.group)
      .text("project", unit.project)
      .text("state", unit.state)
      .time("created", unit.created_ms)
      .time("start", unit.start_ms)
      .time("end", unit.end_ms)
      .number("cpus", unit.cpus)
      .number("memory_mib", unit.memory_mib)
      .number("gpus", unit.gpus)
      .object("tags", unit.tags)
      .require(!unit.id.empty() && unit.id.size() <= kMaxIdBytes, "unit", "an ID")
      .require(!unit.user.empty(), "user", "the name of the owner")
      .require(!unit.project.empty(), "project", "the name of a project")
      .require(unit.end_ms == 0 || unit.start_ms != 0, "start", "the time of the start")
      .require(unit.end_ms == 0 || unit.end_ms >= unit.start_ms, "end", "a time after the start");
  CEEMS_TRY(members.done());
  lines.members.insert({.project = unit.project, .user = unit.user});
  lines.units.push_back(std::move(unit));
  return {};
}

Result<> read_project(const json::object& object, ExecLines& lines) {
  std::string project;
  std::vector<std::string> users;
  std::vector<std::string> leads;
  Members members(object);
  members.text("project", project)
      .texts("users", users)
      .texts("leads", leads)
      .require(!project.empty(), "project", "the name of a project");
  CEEMS_TRY(members.done());
  for (const std::string& user : users) {
    lines.members.insert({.project = project, .user = user});
  }
  if (!leads.empty()) {
    auto& known = lines.leads[project];
    known.insert(known.end(), leads.begin(), leads.end());
  }
  return {};
}

Result<> read_user(const json::object& object, ExecLines& lines) {
  std::string user;
  std::vector<std::string> projects;
  Members members(object);
  members.text("user", user)
      .texts("projects", projects)
      .require(!user.empty(), "user", "the name of a user");
  CEEMS_TRY(members.done());
  for (const std::string& project : projects) {
    lines.members.insert({.project = project, .user = user});
  }
  return {};
}

std::string allocation_text(const ExecUnit& unit) {
  std::string text;
  JsonWriter json(text);
  json.begin_object()
      .member("cpus", unit.cpus)
      .member("gpus", unit.gpus)
      .member("mem", unit.memory_mib * 1024 * 1024)
      .end_object();
  return text;
}

}  // namespace

Result<> read_line(std::string_view line, ExecLines& lines) {
  line = trim(line);
  if (line.empty() || line.front() == '#') {
    return {};
  }
  json::parse_options options;
  options.max_depth = kMaxDepth;
  options.allow_invalid_utf8 = true;  // cleaned before it is stored
  boost::system::error_code error;
  json::value document =
      json::parse(json::string_view(line.data(), line.size()), error, {}, options);
  // Python writes bytes that are not UTF-8 as lone surrogates.
  if (std::string clean; error && append_json_object(clean, line)) {
    document = json::parse(clean, error, {}, options);
  }
  if (error || !document.is_object()) {
    return fail(ErrorCode::kParse, "expected a JSON object, got '{}'", printable(line, 60));
  }
  const json::object& object = document.get_object();
  if (object.contains("unit")) {
    return read_unit(object, lines);
  }
  if (object.contains("project")) {
    return read_project(object, lines);
  }
  if (object.contains("user")) {
    return read_user(object, lines);
  }
  return fail(ErrorCode::kParse, "expected a member unit, project or user, got '{}'",
              printable(line, 60));
}

std::optional<model::Unit> unit_of(const ExecUnit& from,
                                   model::Window window,
                                   const TimeZone& zone) {
  if (from.start_ms == 0 || from.start_ms > window.end_ms) {
    return std::nullopt;
  }
  const bool ended = from.end_ms > 0 && from.end_ms <= window.end_ms;
  const std::int64_t until = ended ? from.end_ms : window.end_ms;
  // A unit that ended before the window counts in full; the store leaves out what it has counted.
  const bool late = ended && until <= window.start_ms;
  const std::int64_t begin = late ? from.start_ms : std::max(from.start_ms, window.start_ms);
  model::Unit unit;
  unit.uuid = from.id;
  unit.name = from.name;
  unit.project = from.project;
  unit.groupname = from.group;
  unit.username = from.user;
  unit.created_at_ts = from.created_ms != 0 ? from.created_ms : from.start_ms;
  unit.started_at_ts = from.start_ms;
  unit.ended_at_ts = ended ? from.end_ms : 0;
  print_times(unit, zone, "Unknown");
  unit.elapsed = elapsed_text((until - from.start_ms) / 1000);
  unit.state = ended ? (from.state.empty() ? "ENDED" : from.state) : "RUNNING";
  unit.allocation = allocation_text(from);
  unit.tags = from.tags;
  unit.total_time_seconds = allocation_times(static_cast<double>(until - begin) / 1000, from.cpus,
                                             from.memory_mib, from.gpus);
  return unit;
}

}  // namespace ceems::ingest
