#include "exporter/redfish/documents.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/strings.h"

namespace ceems::exporter::redfish {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxLink = 2048;
constexpr std::size_t kMaxId = 256;

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

}  // namespace

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
                  .environment = link_of(object_at(document, "EnvironmentMetrics")),
                  .power_subsystem = link_of(object_at(document, "PowerSubsystem")),
                  .sensors = link_of(object_at(document, "Sensors")),
                  .has_system = false};
  if (chassis.id.empty() || chassis.id.size() > kMaxId) {
    chassis.id = last_part(link).substr(0, kMaxId);
  }
  if (const json::object* links = object_at(document, "Links")) {
    const json::array* systems = array_at(*links, "ComputerSystems");
    chassis.has_system = systems != nullptr && !systems->empty();
  }
  return chassis;
}

Result<std::string> parse_link(std::string_view text, std::string_view key) {
  CEEMS_TRY(document, parse_object(text));
  return link_of(object_at(document, key));
}

double EnergyScale::correct(double watts,
                            const std::optional<EnergyCounter>& counter,
                            Clock::SteadyTime now) {
  const double passed = last_ ? std::chrono::duration<double>(now - *last_).count() : 0;
  if (passed > kMaxGap) {
    begin_.reset();
  }
  seconds_ += passed;
  joules_ += watts_ * passed;
  watts_ = watts;
  last_ = now;
  if (counter) {
    compare(*counter);
  }
  return watts * factor_;
}

void EnergyScale::compare(const EnergyCounter& counter) {
  const double counted = counter.joules - begin_.value_or(counter.joules);
  const bool moved = begin_ && counted >= kMinSteps * counter.step;
  if (moved && seconds_ < kMinSeconds) {
    return;
  }
  if (moved && joules_ > 0) {
    const double factor = counted / joules_;
    factor_ = factor <= kMaxFactor && factor * kMaxFactor >= 1 ? factor : 1;
  } else if (begin_ && counted >= 0 && seconds_ < kMaxSeconds) {
    return;
  } else if (begin_ && counted >= 0) {
    factor_ = 1;
  }
  begin_ = counter.joules;
  seconds_ = 0;
  joules_ = 0;
}

}  // namespace ceems::exporter::redfish
