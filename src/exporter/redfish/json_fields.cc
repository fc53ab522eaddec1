#include "exporter/redfish/json_fields.h"

#include <utility>

namespace ceems::exporter::redfish {

namespace json = boost::json;

Result<json::object> parse_object(std::string_view text) {
  boost::system::error_code error;
  json::value document = json::parse(json::string_view(text.data(), text.size()), error);
  if (error || !document.is_object()) {
    return fail(ErrorCode::kParse, "expected a JSON object");
  }
  return std::move(document.get_object());
}

const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr ? value->if_object() : nullptr;
}

const json::array* array_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr ? value->if_array() : nullptr;
}

std::string string_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? json::value_to<std::string>(*value)
                                                : std::string();
}

}  // namespace ceems::exporter::redfish
