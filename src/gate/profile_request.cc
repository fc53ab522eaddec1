#include "gate/profile_request.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/result.h"
#include "base/strings.h"
#include "base/wire_format.h"
#include "gate/named_clusters.h"
#include "gate/profile_calls.h"
#include "gate/profile_fields.h"
#include "net/gunzip.h"
#include "promql/parser.h"
#include "promql/patterns.h"
#include "promql/printer.h"

namespace ceems::gate {
namespace {

namespace json = boost::json;

constexpr std::string_view kProto = "application/proto";
constexpr std::string_view kJson = "application/json";
constexpr std::size_t kMaxSelectors = 100;
constexpr std::size_t kMaxFields = 10'000;
constexpr std::size_t kProfileJsonDepth = 32;

Refusal bad_message(std::string_view why) {
  return bad_data(fmt::format("cannot read the call: {}", why), "syntax");
}

Refusal bad_selector(const promql::SyntaxError& error) {
  return bad_data(fmt::format("invalid selector: {}", error.text()), "syntax");
}

/// A field of a message and the selector that it contains.
struct Slot {
  WireField* field = nullptr;
  json::string* value = nullptr;  // instead of `field` in a JSON document
  std::string_view source{};      ///< the selector as received
  promql::VectorSelector selector{};
  std::string text{};  // canonical; set by forward()
};

/// The message in the field with the index `place`.
struct InnerMessage {
  std::size_t place;
  std::vector<WireField> fields;
  std::string text{};
};

Checked<std::vector<WireField>> read_fields(std::string_view message) {
  std::vector<WireField> fields;
  WireReader reader(message);
  while (const auto field = reader.next()) {
    if (fields.size() >= kMaxFields) {
      return std::unexpected(bad_message("too many fields"));
    }
    fields.push_back(*field);
  }
  if (!reader.good()) {
    return std::unexpected(bad_message("invalid protocol buffers message"));
  }
  return fields;
}

/// A time of the call; 0 if it is not given, nothing if it is given twice or invalid.
std::optional<std::int64_t> time_in(const std::vector<WireField>& fields, std::uint32_t number) {
  std::int64_t time = 0;
  bool found = false;
  for (const WireField& field : fields) {
    if (field.number != number) {
      continue;
    }
    const auto value = field.varint();
    if (found || !value) {
      return std::nullopt;
    }
    found = true;
    time = static_cast<std::int64_t>(*value);
  }
  return time;
}

/// ProtoJSON writes 64-bit numbers as strings and accepts both.
std::optional<std::int64_t> time_in(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr || value->is_null()) {
    return 0;
  }
  if (const auto* const text = value->if_string()) {
    return parse_int<std::int64_t>(std::string_view(*text));
  }
  return value->is_int64() ? std::optional(value->get_int64()) : std::nullopt;
}

/// The value of a field of type double: one byte of key, because field numbers here are small, then
/// eight bytes in little-endian order.
std::optional<double> double_in(const WireField& field) {
  constexpr std::size_t kLength = 9;
  constexpr unsigned kWireTypeBits = 7;
  constexpr unsigned kI64 = 1;  // wire type I64
  if (field.has_length || field.bytes.size() != kLength ||
      (static_cast<unsigned char>(field.bytes[0]) & kWireTypeBits) != kI64) {
    return std::nullopt;
  }
  std::uint64_t bits = 0;
  for (std::size_t i = kLength - 1; i > 0; --i) {
    bits = (bits << 8U) | static_cast<unsigned char>(field.bytes[i]);
  }
  return std::bit_cast<double>(bits);
}

/// A step in milliseconds, rounded up; nothing if it is not positive or too long.
std::optional<std::int64_t> step_ms(std::optional<double> seconds) {
  constexpr double kMsPerSecond = 1000;
  if (!seconds || !std::isfinite(*seconds) || *seconds <= 0 ||
      *seconds * kMsPerSecond > static_cast<double>(kFarTime)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(std::ceil(*seconds * kMsPerSecond));
}

std::optional<std::int64_t> step_in(const std::vector<WireField>& fields, std::uint32_t number) {
  std::optional<double> seconds;
  for (const WireField& field : fields) {
    if (field.number == number) {
      if (seconds) {
        return std::nullopt;
      }
      seconds = double_in(field);
      if (!seconds) {
        return std::nullopt;
      }
    }
  }
  return step_ms(seconds);
}

std::optional<std::int64_t> step_in(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (const auto* const text = value->if_string()) {
    return step_ms(parse_double(std::string_view(*text)));
  }
  boost::system::error_code error;
  const double seconds = value->to_number<double>(error);
  return error ? std::nullopt : step_ms(seconds);
}

/// The call that a request makes, if path and method may pass.
Checked<const ProfileCall*> route_of(const ParsedRequest& received, const ProfileRules& rules) {
  const auto& path = received.path();
  if (!path) {
    return std::unexpected(path.error());
  }
  const ProfileCall* const call = find_profile_call(*path, rules.prefixes);
  if (call == nullptr || !received.query_text().empty()) {
    return std::unexpected(forbidden_resource("path"));
  }
  if (received.raw().method != "POST") {
    return std::unexpected(wrong_method());
  }
  return call;
}

std::string write_fields(const std::vector<WireField>& fields) {
  std::string message;
  for (const WireField& field : fields) {
    append_wire_field(message, field);
  }
  return message;
}

}  // namespace

struct ProfileRequest::Parts {
  explicit Parts(const SelectionRules& rules)
      : work(rules.max_steps),
        language(within(rules.language, work)),
        selection(rules, Budget::kFull, language.patterns) {}

  std::string path;
  const ProfileCall* call = nullptr;
  bool is_json = false;
  std::string body;  ///< `fields` point into it
  std::vector<WireField> fields;
  std::deque<InnerMessage> inner;
  json::value document;
  std::deque<Slot> slots;
  std::size_t length = 0;  ///< of the texts in `slots`
  promql::WorkBudget work;
  promql::ParseOptions language;
  Selection selection;
  NamedClusters* clusters = nullptr;  ///< not null: selectors are only added to it

  static promql::ParseOptions within(promql::ParseOptions language, promql::WorkBudget& work) {
    language.patterns.work = &work;
    language.patterns.check = false;  // patterns are compiled when all selectors have passed
    return language;
  }

  Checked<bool> read_proto(std::string_view message);
  Checked<bool> read_texts(std::vector<WireField>& message, const ProfileCall& expected);
  Checked<bool> read_json(std::string_view text);
  Checked<bool> read_object(json::object& object, const ProfileCall& expected);
  Checked<bool> add_slot(Slot slot);
  /// Refuses fields that are not known, and compiles the patterns of all selectors.
  [[nodiscard]] Checked<bool> check_rest() const;
  [[nodiscard]] Checked<bool> check_type(std::string_view text) const;
  /// Start and end of the call, or of each of its inner messages; nothing if one is invalid.
  [[nodiscard]] std::optional<std::vector<promql::TimeSpan>> times() const;
};

ProfileRequest::ProfileRequest(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ProfileRequest::ProfileRequest(ProfileRequest&&) noexcept = default;
ProfileRequest& ProfileRequest::operator=(ProfileRequest&&) noexcept = default;
ProfileRequest::~ProfileRequest() = default;

Checked<bool> ProfileRequest::Parts::add_slot(Slot slot) {
  // Together they must not be longer than a query: each of their patterns is compiled.
  length += promql::size_without_lists(slot.source);
  if (length > language.max_bytes || slots.size() >= kMaxSelectors) {
    return std::unexpected(bad_data("too many selectors", "size"));
  }
  auto parsed = promql::parse_selector(slot.source, language, true);
  if (!parsed && clusters != nullptr) {
    clusters->add_found_in(slot.source);
    return true;
  }
  if (!parsed) {
    return std::unexpected(bad_selector(parsed.error()));
  }
  slot.selector = std::move(*parsed);
  slots.push_back(std::move(slot));
  if (clusters != nullptr) {
    clusters->add(slots.back().selector);
    return true;
  }
  return selection.add(slots.back().selector);
}

Checked<bool> ProfileRequest::Parts::check_rest() const {
  if (clusters != nullptr) {
    return true;
  }
  const ProfileFields known = fields_of_call(call->method);
  CEEMS_TRY(is_json ? check_fields(document.get_object(), known) : check_fields(fields, known));
  for (const Slot& slot : slots) {
    if (auto error = promql::check_patterns(slot.source, slot.selector, language.patterns, true)) {
      return std::unexpected(work.exhausted() ? too_much_work() : bad_selector(*error));
    }
  }
  return true;
}

/// Checks a profile type, of which the server makes another matcher.
Checked<bool> ProfileRequest::Parts::check_type(std::string_view text) const {
  if (clusters == nullptr && !survives_raw(text)) {
    return std::unexpected(raw_text());
  }
  return true;
}

Checked<bool> ProfileRequest::Parts::read_proto(std::string_view message) {
  body = message;
  CEEMS_TRY(parsed, read_fields(body));
  fields = std::move(parsed);
  if (call->inner.empty()) {
    return call->number == 0 ? true : read_texts(fields, *call);
  }
  for (const ProfileCall::Inner& part : call->inner) {
    const auto number = [&](const WireField& field) { return field.number == part.number; };
    const auto found = std::ranges::find_if(fields, number);
    if (std::ranges::count_if(fields, number) != 1 || !found->has_length) {
      return std::unexpected(bad_message(fmt::format("'{}' must be given once", part.name)));
    }
    CEEMS_TRY(below, read_fields(found->bytes));
    inner.push_back(
        {.place = static_cast<std::size_t>(found - fields.begin()), .fields = std::move(below)});
    CEEMS_TRY(read_texts(inner.back().fields, kSelectingCall));
  }
  return true;
}

Checked<bool> ProfileRequest::Parts::read_texts(std::vector<WireField>& message,
                                                const ProfileCall& expected) {
  std::size_t found = 0;
  for (WireField& field : message) {
    if (expected.type != 0 && field.number == expected.type) {
      CEEMS_TRY(field.has_length
                    ? check_type(field.bytes)
                    : std::unexpected(bad_message("the profile type is not a string")));
    }
    if (field.number != expected.number) {
      continue;
    }
    if (!field.has_length || (++found > 1 && !expected.repeated)) {
      return std::unexpected(bad_message("a selector is given twice or is not a string"));
    }
    CEEMS_TRY(add_slot({.field = &field, .source = field.bytes}));
  }
  if (found == 0) {
    // Without a selector the call covers everything: an open selector, which confine() can limit.
    message.push_back({.number = expected.number, .has_length = true, .bytes = "{}"});
    return add_slot({.field = &message.back(), .source = "{}"});
  }
  return true;
}

Checked<bool> ProfileRequest::Parts::read_json(std::string_view text) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kProfileJsonDepth;
  document = json::parse(text, error, {}, options);
  auto* const object = error ? nullptr : document.if_object();
  if (object == nullptr) {
    return std::unexpected(bad_message("expected a JSON object"));
  }
  is_json = true;
  if (call->inner.empty()) {
    return call->number == 0 ? true : read_object(*object, *call);
  }
  for (const ProfileCall::Inner& part : call->inner) {
    auto* const value = object->if_contains(part.name);
    auto* const message = value == nullptr ? nullptr : value->if_object();
    if (message == nullptr) {
      return std::unexpected(bad_message(fmt::format("'{}' must be an object", part.name)));
    }
    CEEMS_TRY(read_object(*message, kSelectingCall));
  }
  return true;
}

Checked<bool> ProfileRequest::Parts::read_object(json::object& object,
                                                 const ProfileCall& expected) {
  // ProtoJSON has two spellings of a field name, of which only one may be given.
  if (expected.json_name != expected.proto_name && object.contains(expected.json_name) &&
      object.contains(expected.proto_name)) {
    return std::unexpected(bad_message("a selector is given twice"));
  }
  for (const char* const name : {"profileTypeID", "profile_typeID"}) {
    const json::value* const type = expected.type == 0 ? nullptr : object.if_contains(name);
    if (type == nullptr || type->is_null()) {
      continue;
    }
    if (!type->is_string()) {
      return std::unexpected(bad_message("the profile type is not a string"));
    }
    CEEMS_TRY(check_type(type->get_string()));
  }
  json::value* value = object.if_contains(expected.json_name);
  if (value == nullptr) {
    value = object.if_contains(expected.proto_name);
  }
  if (value == nullptr || value->is_null() || (value->is_array() && value->get_array().empty())) {
    object.erase(expected.proto_name);
    value = &(object[expected.json_name] =
                  expected.repeated ? json::value(json::array{"{}"}) : json::value("{}"));
  }
  if (auto* const text = value->if_string(); text != nullptr && !expected.repeated) {
    return add_slot({.value = text, .source = *text});
  }
  auto* const list = value->if_array();
  if (list == nullptr || !expected.repeated) {
    return std::unexpected(bad_message("a selector is not a string"));
  }
  for (json::value& element : *list) {
    auto* const text = element.if_string();
    if (text == nullptr) {
      return std::unexpected(bad_message("a selector is not a string"));
    }
    CEEMS_TRY(add_slot({.value = text, .source = *text}));
  }
  return true;
}

bool ProfileRequest::accepts_route(const ParsedRequest& received, const ProfileRules& rules) {
  return route_of(received, rules).has_value();
}

Checked<ProfileRequest> ProfileRequest::read(const ParsedRequest& received,
                                             const ProfileRules& rules,
                                             NamedClusters* clusters) {
  CEEMS_TRY(call, route_of(received, rules));
  const RawRequest& raw = received.raw();
  if (raw.body.size() > rules.max_body_bytes) {
    return std::unexpected(large_body());
  }
  std::string plain;
  std::string_view body = raw.body;
  if (same_in_any_case(raw.content_encoding, "gzip")) {
    auto unpacked = net::gunzip(raw.body, rules.max_body_bytes);
    if (!unpacked) {
      return std::unexpected(unpacked.error().code == ErrorCode::kInvalidArgument
                                 ? large_body()
                                 : bad_message(unpacked.error().message));
    }
    plain = std::move(*unpacked);
    body = plain;
  } else if (!raw.content_encoding.empty() && !same_in_any_case(raw.content_encoding, "identity")) {
    return std::unexpected(wrong_media("calls must not be compressed except with gzip"));
  }
  auto parts = std::make_unique<Parts>(rules.selection);
  parts->path = *received.path();
  parts->call = call;
  parts->clusters = clusters;
  const std::string_view type = media_type(raw.content_type);
  Checked<bool> read = true;
  if (same_in_any_case(type, kJson)) {
    read = parts->read_json(body);
  } else if (same_in_any_case(type, kProto) || type.empty()) {
    read = parts->read_proto(body);
  } else {
    read = std::unexpected(wrong_media(fmt::format("calls must be {} or {}", kProto, kJson)));
  }
  if (read) {
    read = parts->check_rest();
  }
  if (!read) {
    return std::unexpected(std::move(read).error());
  }
  return ProfileRequest(std::move(parts));
}

std::optional<std::vector<promql::TimeSpan>> ProfileRequest::Parts::times() const {
  std::vector<promql::TimeSpan> spans;
  bool good = true;
  const auto add = [&](std::optional<std::int64_t> start, std::optional<std::int64_t> end,
                       std::optional<std::int64_t> step = 0) {
    good = good && start && end && step;
    const bool whole = good && *start > 0 && *end > 0;
    spans.push_back(whole ? promql::TimeSpan{std::min(*start, *end) - *step, std::max(*start, *end)}
                          : kAllTimes);
  };
  const auto step_of = [&](const auto& message, const auto& field) {
    return call->step == 0 ? std::optional<std::int64_t>(0) : step_in(message, field);
  };
  if (is_json) {
    const json::object& object = document.get_object();
    for (const ProfileCall::Inner& part : call->inner) {
      const json::object& message = object.at(part.name).get_object();
      add(time_in(message, "start"), time_in(message, "end"));
    }
    if (call->inner.empty()) {
      add(time_in(object, "start"), time_in(object, "end"), step_of(object, "step"));
    }
  } else {
    for (const InnerMessage& message : inner) {
      add(time_in(message.fields, kSelectingCall.start),
          time_in(message.fields, kSelectingCall.start + 1));
    }
    if (inner.empty()) {
      add(time_in(fields, call->start), time_in(fields, call->start + 1),
          step_of(fields, call->step));
    }
  }
  return good ? std::optional(spans) : std::nullopt;
}

promql::TimeSpan ProfileRequest::times_read(std::int64_t /*now_ms*/) const {
  const auto spans = parts_->times();
  if (!spans || spans->empty()) {
    return kAllTimes;
  }
  promql::TimeSpan read = spans->front();
  for (const promql::TimeSpan& span : *spans) {
    read.from_ms = std::min(read.from_ms, span.from_ms);
    read.to_ms = std::max(read.to_ms, span.to_ms);
  }
  return read;
}

Checked<bool> ProfileRequest::restrict_times(const SharedIds& ids, std::int64_t /*now_ms*/) const {
  const auto spans = parts_->times();
  if (!spans) {
    return std::unexpected(bad_message("start, end or step is invalid"));
  }
  for (const promql::TimeSpan& span : *spans) {
    const Evaluation requested{.start_ms = std::min(span.from_ms, kFarTime),
                               .end_ms = std::min(span.to_ms, kFarTime)};
    if (narrowed(requested, {.around = promql::TimeSpan{}}, 0, ids) != requested) {
      return std::unexpected(shared_id(ids.begin()->first));
    }
  }
  return true;
}

Selection& ProfileRequest::selection() {
  return parts_->selection;
}

Forward ProfileRequest::forward() const {
  Forward forward{.method = "POST", .path = write_path(parts_->path)};
  for (Slot& slot : parts_->slots) {
    slot.text = promql::print(slot.selector);
    if (slot.field != nullptr) {
      slot.field->bytes = slot.text;
    } else {
      *slot.value = slot.text;
    }
  }
  if (parts_->is_json) {
    forward.content_type = kJson;
    forward.body = json::serialize(parts_->document);
    return forward;
  }
  for (InnerMessage& message : parts_->inner) {
    message.text = write_fields(message.fields);
    parts_->fields[message.place].bytes = message.text;
  }
  forward.content_type = kProto;
  forward.body = write_fields(parts_->fields);
  return forward;
}

}  // namespace ceems::gate
