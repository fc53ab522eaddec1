#include "exporter/redfish/documents.h"

#include <algorithm>
#include <cmath>

#include <boost/json.hpp>

#include "base/strings.h"

namespace ceems::exporter::redfish {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxLink = 2048;
constexpr std::size_t kMaxId = 256;
constexpr double kMaxWatts = 1e9;  // larger values are invalid

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

/// The link in an object such as {"@odata.id": "/redfish/v1/Chassis"}; "href" in old services.
std::string link_of(const json::object* object) {
  if (object == nullptr) {
    return {};
  }
  std::string link = link_path(string_at(*object, "@odata.id"));
  return link.empty() ? link_path(string_at(*object, "href")) : link;
}

std::vector<std::string> links_of(const json::array* array) {
  std::vector<std::string> links;
  if (array == nullptr) {
    return links;
  }
  for (const json::value& member : *array) {
    if (std::string link = link_of(member.if_object()); !link.empty()) {
      links.push_back(std::move(link));
    }
  }
  return links;
}

/// Adds a number. A missing one or null counts as 0.
Result<> add_watts(const json::object& object, std::string_view key, double& sum) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || value->is_null()) {
    return {};
  }
  if (!value->is_number()) {
    return fail(ErrorCode::kParse, "{}: expected a number", key);
  }
  const double watts = value->to_number<double>();
  if (!(std::abs(watts) <= kMaxWatts)) {
    return fail(ErrorCode::kParse, "{}: expected watts", key);
  }
  sum += watts;
  return {};
}

Result<> add_entry(const json::object& entry, Watts& sum) {
  CEEMS_TRY(add_watts(entry, "PowerConsumedWatts", sum.current));
  const json::value* metrics = entry.if_contains("PowerMetrics");
  if (metrics == nullptr || metrics->is_null()) {
    return {};
  }
  if (!metrics->is_object()) {
    return fail(ErrorCode::kParse, "PowerMetrics: expected an object");
  }
  const json::object& values = metrics->get_object();
  Result<> added = add_watts(values, "MinConsumedWatts", sum.minimum);
  if (added) {
    added = add_watts(values, "MaxConsumedWatts", sum.maximum);
  }
  if (added) {
    added = add_watts(values, "AverageConsumedWatts", sum.average);
  }
  return added;
}

}  // namespace

std::string link_path(std::string_view link) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (link.starts_with(scheme)) {
      link.remove_prefix(scheme.size());
      link.remove_prefix(std::min(link.find('/'), link.size()));
      break;
    }
  }
  const bool odd = std::ranges::any_of(link, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte >= 0x7f || c == '\\';
  });
  // "//host/path" would be another host.
  if (odd || !link.starts_with('/') || link.starts_with("//") || link.size() > kMaxLink) {
    return {};
  }
  return std::string(link.substr(0, link.find('#')));
}

Result<ServiceRoot> parse_service_root(std::string_view text) {
  CEEMS_TRY(root, parse_object(text));
  ServiceRoot found{.chassis = link_of(object_at(root, "Chassis")), .sessions = {}};
  if (const json::object* links = object_at(root, "Links")) {
    found.sessions = link_of(object_at(*links, "Sessions"));
  }
  return found;
}

Result<Collection> parse_collection(std::string_view text) {
  CEEMS_TRY(document, parse_object(text));
  Collection found;
  if (const json::object* links = object_at(document, "Links")) {
    found.members = links_of(array_at(*links, "Members"));
  }
  if (found.members.empty()) {
    found.members = links_of(array_at(document, "Members"));
  }
  found.next = link_path(string_at(document, "Members@odata.nextLink"));
  return found;
}

Result<Chassis> parse_chassis(std::string_view text, std::string_view link) {
  CEEMS_TRY(document, parse_object(text));
  Chassis chassis{.id = string_at(document, "Id"),
                  .power = link_of(object_at(document, "Power")),
                  .has_system = false};
  if (chassis.id.empty() || chassis.id.size() > kMaxId) {
    while (link.ends_with('/')) {
      link.remove_suffix(1);
    }
    chassis.id = link.substr(link.rfind('/') + 1).substr(0, kMaxId);
  }
  if (const json::object* links = object_at(document, "Links")) {
    const json::array* systems = array_at(*links, "ComputerSystems");
    chassis.has_system = systems != nullptr && !systems->empty();
  }
  return chassis;
}

Result<Watts> parse_power(std::string_view text) {
  CEEMS_TRY(document, parse_object(text));
  Watts sum;
  const json::value* control = document.if_contains("PowerControl");
  if (control == nullptr || control->is_null()) {
    return sum;
  }
  if (!control->is_array()) {
    return fail(ErrorCode::kParse, "PowerControl: expected a list");
  }
  for (const json::value& entry : control->get_array()) {
    if (entry.is_null()) {
      continue;
    }
    if (!entry.is_object()) {
      return fail(ErrorCode::kParse, "PowerControl: expected a list of objects");
    }
    CEEMS_TRY_IN("PowerControl", add_entry(entry.get_object(), sum));
  }
  return sum;
}

}  // namespace ceems::exporter::redfish
