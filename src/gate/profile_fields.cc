#include "gate/profile_fields.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/result.h"

namespace ceems::gate {
namespace {

namespace json = boost::json;
using Kind = ProfileField::Kind;

constexpr std::array kLocation = {ProfileField{1, "name", "name", Kind::kText}};
constexpr std::array kGoPgo = {
    ProfileField{1, "keep_locations", "keepLocations", Kind::kNumber},
    ProfileField{2, "aggregate_callees", "aggregateCallees", Kind::kNumber},
};
constexpr std::array kStackTraceSelector = {
    ProfileField{1, "call_site", "callSite", Kind::kMessages, kLocation},
    ProfileField{2, "go_pgo", "goPgo", Kind::kMessage, kGoPgo},
};

constexpr ProfileField text(std::uint32_t number, std::string_view proto, std::string_view json) {
  return {number, proto, json, Kind::kText};
}
constexpr ProfileField texts(std::uint32_t number, std::string_view proto, std::string_view json) {
  return {number, proto, json, Kind::kTexts};
}
constexpr ProfileField integer(std::uint32_t number,
                               std::string_view proto,
                               std::string_view json) {
  return {number, proto, json, Kind::kNumber};
}
constexpr ProfileField profile_type() {
  return text(1, "profile_typeID", "profileTypeID");
}
constexpr ProfileField label_selector() {
  return text(2, "label_selector", "labelSelector");
}
constexpr ProfileField start(std::uint32_t number) {
  return integer(number, "start", "start");
}
constexpr ProfileField end(std::uint32_t number) {
  return integer(number, "end", "end");
}
constexpr ProfileField step(std::uint32_t number) {
  return {number, "step", "step", Kind::kDouble};
}
constexpr ProfileField stack_trace_selector(std::uint32_t number) {
  return {number, "stack_trace_selector", "stackTraceSelector", Kind::kMessage,
          kStackTraceSelector};
}

constexpr std::array kProfileTypes = {start(1), end(2)};
constexpr std::array kLabelNames = {texts(1, "matchers", "matchers"), start(2), end(3)};
constexpr std::array kLabelValues = {text(1, "name", "name"), texts(2, "matchers", "matchers"),
                                     start(3), end(4)};
constexpr std::array kSeries = {texts(1, "matchers", "matchers"),
                                texts(2, "label_names", "labelNames"), start(3), end(4)};
/// Without 9, `async`.
constexpr std::array kStacktraces = {profile_type(),
                                     label_selector(),
                                     start(3),
                                     end(4),
                                     integer(5, "max_nodes", "maxNodes"),
                                     integer(6, "format", "format"),
                                     stack_trace_selector(7),
                                     texts(8, "profile_id_selector", "profileIdSelector"),
                                     texts(10, "trace_id_selector", "traceIdSelector"),
                                     texts(11, "span_selector", "spanSelector")};
constexpr std::array kSpanProfile = {profile_type(),
                                     label_selector(),
                                     texts(3, "span_selector", "spanSelector"),
                                     start(4),
                                     end(5),
                                     integer(6, "max_nodes", "maxNodes"),
                                     integer(7, "format", "format")};
constexpr std::array kProfile = {profile_type(),
                                 label_selector(),
                                 start(3),
                                 end(4),
                                 integer(5, "max_nodes", "maxNodes"),
                                 stack_trace_selector(6),
                                 texts(7, "profile_id_selector", "profileIdSelector"),
                                 texts(8, "trace_id_selector", "traceIdSelector")};
constexpr std::array kSelectSeries = {profile_type(),
                                      label_selector(),
                                      start(3),
                                      end(4),
                                      texts(5, "group_by", "groupBy"),
                                      step(6),
                                      integer(7, "aggregation", "aggregation"),
                                      stack_trace_selector(8),
                                      integer(9, "limit", "limit"),
                                      integer(10, "exemplar_type", "exemplarType")};
constexpr std::array kHeatmap = {profile_type(),
                                 label_selector(),
                                 start(3),
                                 end(4),
                                 step(5),
                                 texts(6, "group_by", "groupBy"),
                                 integer(7, "query_type", "queryType"),
                                 integer(8, "exemplar_type", "exemplarType"),
                                 integer(9, "limit", "limit")};
constexpr std::array kDiff = {ProfileField{1, "left", "left", Kind::kMessage, kStacktraces},
                              ProfileField{2, "right", "right", Kind::kMessage, kStacktraces}};

struct Call {
  std::string_view method;
  ProfileFields fields;
};
constexpr std::array kCallFields = {
    Call{"ProfileTypes", kProfileTypes},
    Call{"LabelNames", kLabelNames},
    Call{"LabelValues", kLabelValues},
    Call{"Series", kSeries},
    Call{"SelectMergeStacktraces", kStacktraces},
    Call{"SelectMergeSpanProfile", kSpanProfile},
    Call{"SelectMergeProfile", kProfile},
    Call{"SelectSeries", kSelectSeries},
    Call{"SelectHeatmap", kHeatmap},
    Call{"Diff", kDiff},
};

constexpr std::size_t kMaxInnerFields = 10'000;

std::unexpected<Refusal> unknown_field(std::string_view name) {
  constexpr std::size_t kMaxShownBytes = 40;
  return std::unexpected(
      bad_data(fmt::format("the call has a field that the load balancer does not pass on: {}",
                           name.substr(0, kMaxShownBytes)),
               "field"));
}

std::unexpected<Refusal> wrong_type(std::string_view name) {
  return std::unexpected(
      bad_data(fmt::format("the field {} of the call has a wrong type", name), "field"));
}

/// Whether the wire type is I64. Field numbers here are below 16, so that the key is one byte.
bool is_i64(const WireField& field) {
  constexpr unsigned kWireTypeBits = 7;
  constexpr unsigned kI64 = 1;
  return !field.has_length && !field.bytes.empty() &&
         (static_cast<unsigned char>(field.bytes[0]) & kWireTypeBits) == kI64;
}

bool has_type(const WireField& field, Kind kind) {
  switch (kind) {
    case Kind::kNumber:
      return field.varint().has_value();
    case Kind::kDouble:
      return is_i64(field);
    default:
      return field.has_length;
  }
}

Checked<bool> check_message(std::string_view message, ProfileFields fields) {
  std::vector<WireField> inner;
  WireReader reader(message);
  while (const auto field = reader.next()) {
    inner.push_back(*field);
    if (inner.size() > kMaxInnerFields) {
      return wrong_type("of an inner message");
    }
  }
  return reader.good() ? check_fields(inner, fields) : wrong_type("of an inner message");
}

bool are_texts(const json::array& list) {
  return std::ranges::all_of(list, [](const json::value& value) { return value.is_string(); });
}

/// Numbers may be written as strings, and enumerations are names.
bool is_number(const json::value& value) {
  return value.is_number() || value.is_bool() || value.is_string();
}

Checked<bool> check_value(const json::value& value, const ProfileField& field) {
  const json::array* const list = value.if_array();
  switch (field.kind) {
    case Kind::kText:
      return value.is_string() ? Checked<bool>(true) : wrong_type(field.json_name);
    case Kind::kTexts:
      return list != nullptr && are_texts(*list) ? Checked<bool>(true)
                                                 : wrong_type(field.json_name);
    case Kind::kNumber:
    case Kind::kDouble:
      return is_number(value) ? Checked<bool>(true) : wrong_type(field.json_name);
    case Kind::kMessage:
      return value.is_object() ? check_fields(value.get_object(), field.inner)
                               : wrong_type(field.json_name);
    case Kind::kMessages:
      break;
  }
  if (list == nullptr) {
    return wrong_type(field.json_name);
  }
  for (const json::value& element : *list) {
    CEEMS_TRY(element.is_object() ? check_fields(element.get_object(), field.inner)
                                  : wrong_type(field.json_name));
  }
  return true;
}

}  // namespace

ProfileFields fields_of_call(std::string_view method) {
  const auto* const found = std::ranges::find(kCallFields, method, &Call::method);
  return found == kCallFields.end() ? ProfileFields{} : found->fields;
}

Checked<bool> check_fields(const std::vector<WireField>& message, ProfileFields fields) {
  for (const WireField& field : message) {
    const auto known = std::ranges::find(fields, field.number, &ProfileField::number);
    if (known == fields.end()) {
      return unknown_field(std::to_string(field.number));
    }
    if (!has_type(field, known->kind)) {
      return wrong_type(known->proto_name);
    }
    if (!known->inner.empty()) {
      CEEMS_TRY(check_message(field.bytes, known->inner));
    }
  }
  return true;
}

Checked<bool> check_fields(const json::object& message, ProfileFields fields) {
  for (const auto& [key, value] : message) {
    const std::string_view name = key;
    const auto known = std::ranges::find_if(fields, [&](const ProfileField& field) {
      return field.json_name == name || field.proto_name == name;
    });
    if (known == fields.end()) {
      return unknown_field(name);
    }
    if (known->json_name != known->proto_name && name == known->proto_name &&
        message.contains(known->json_name)) {
      return wrong_type(known->json_name);
    }
    if (value.is_null()) {
      continue;
    }
    CEEMS_TRY(check_value(value, *known));
  }
  return true;
}

}  // namespace ceems::gate
