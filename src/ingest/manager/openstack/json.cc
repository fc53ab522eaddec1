#include "ingest/manager/openstack/json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/json_cutter.h"
#include "base/strings.h"
#include "base/time/time_text.h"
#include "base/utf8.h"
#include "net/http.h"

namespace ceems::ingest::openstack {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxTextBytes = 1024;
constexpr std::size_t kMaxStateBytes = 64;
constexpr std::size_t kMaxEntries = 128;  // Nova's own limit for metadata
// A page has 100 to 200 values per server; the limit bounds the memory for anything larger.
constexpr std::ptrdiff_t kMaxValues = 2'000'000;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 40U;  // for memory, disk and CPUs
constexpr std::int64_t kDay = 86'400;

Result<json::object> parse_object(std::string_view text) {
  if (std::ranges::count(text, ',') > kMaxValues) {
    return fail(ErrorCode::kParse, "JSON with more than {} values", kMaxValues);
  }
  boost::system::error_code error;
  json::value document = json::parse(json::string_view(text.data(), text.size()), error);
  if (error) {
    return fail(ErrorCode::kParse, "invalid JSON: {}", error.message());
  }
  if (!document.is_object()) {
    return fail(ErrorCode::kParse, "expected a JSON object");
  }
  return std::move(document.get_object());
}

/// The same for an answer with a list. If it is not valid JSON, the elements of `list` that are
/// count. `links` names the list of links to the next page; without them the answer is incomplete.
Result<json::object> parse_list(std::string_view text,
                                std::string_view list,
                                std::string_view links,
                                MendedJson& mended) {
  auto document = parse_object(text);
  if (document || std::ranges::count(text, ',') > kMaxValues) {
    return document;
  }
  auto mending = mend_json(text, {std::string(list), std::string(links)});
  if (!mending) {
    return document;
  }
  mended = std::move(*mending);
  const std::string name = fmt::format(R"("{}")", links);
  const bool lost_links =
      text.find(name) != std::string_view::npos && mended.text.find(name) == std::string::npos;
  return lost_links ? document : parse_object(mended.text);
}

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

/// Returns valid UTF-8 of bounded length; empty if the value is not a string.
std::string text_at(const json::object& object,
                    std::string_view key,
                    std::size_t limit = kMaxTextBytes) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) {
    return {};
  }
  return clean_text(view(value->get_string()).substr(0, limit));
}

const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr ? value->if_object() : nullptr;
}

const json::array* array_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr ? value->if_array() : nullptr;
}

/// Reads a count that Nova gives as a number, as a string, or as "" for none; 0 for anything else.
std::int64_t count_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  std::int64_t number = 0;
  if (value == nullptr) {
    return 0;
  }
  if (value->is_int64()) {
    number = value->get_int64();
  } else if (value->is_double() && std::isfinite(value->get_double())) {
    number = static_cast<std::int64_t>(
        std::clamp(value->get_double(), 0.0, static_cast<double>(kMaxCount)));
  } else if (value->is_string()) {
    number = parse_int<std::int64_t>(view(value->get_string())).value_or(0);
  }
  return std::clamp<std::int64_t>(number, 0, kMaxCount);
}

std::optional<std::int64_t> time_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? parse_utc(view(value->get_string()))
                                                : std::nullopt;
}

std::map<std::string, std::string> texts_at(const json::object& object, std::string_view key) {
  std::map<std::string, std::string> texts;
  const json::object* members = object_at(object, key);
  if (members == nullptr) {
    return texts;
  }
  for (const auto& [name, value] : *members) {
    if (texts.size() == kMaxEntries) {
      break;
    }
    std::string text;
    if (value.is_string()) {
      text = clean_text(view(value.get_string()).substr(0, kMaxTextBytes));
    } else if (value.is_number() || value.is_bool()) {
      text = json::serialize(value);
    } else {
      continue;
    }
    texts[clean_text(std::string_view(name.data(), name.size()).substr(0, kMaxTextBytes))] =
        std::move(text);
  }
  return texts;
}

bool is_said(const json::object& object, std::string_view key, bool truth) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->get_bool() == truth;
}

/// Returns the `marker` of a link to the next page. The host in the link is not used, because it is
/// the one by which Nova knows itself and may be unreachable behind a proxy.
std::string marker_of(std::string_view link) {
  const std::size_t question = link.find('?');
  if (question == std::string_view::npos || link.size() > 8192) {
    return {};
  }
  for (const auto& [name, value] : net::parse_query(link.substr(question + 1))) {
    if (name == "marker") {
      return value;
    }
  }
  return {};
}

/// Finds the marker in a list of links such as `servers_links`.
std::string next_marker(const json::object& document, std::string_view key) {
  const json::array* links = array_at(document, key);
  if (links == nullptr) {
    return {};
  }
  for (const json::value& link : *links) {
    const json::object* object = link.if_object();
    if (object != nullptr && text_at(*object, "rel") == "next") {
      return marker_of(text_at(*object, "href", 8192));
    }
  }
  return {};
}

Flavor flavor_of(const json::object& object) {
  Flavor flavor;
  flavor.id = text_at(object, "id");
  flavor.detailed = object.contains("vcpus");
  flavor.name = text_at(object, "original_name");
  if (flavor.name.empty()) {
    flavor.name = text_at(object, "name");
  }
  flavor.vcpus = count_at(object, "vcpus");
  flavor.ram_mib = count_at(object, "ram");
  flavor.disk_gb = count_at(object, "disk");
  flavor.swap_mb = count_at(object, "swap");
  flavor.ephemeral_gb = count_at(object, "OS-FLV-EXT-DATA:ephemeral");
  flavor.extra_specs = texts_at(object, "extra_specs");
  const json::object* specs = object_at(object, "extra_specs");
  flavor.has_extra_specs = specs != nullptr && specs->size() == flavor.extra_specs.size();
  flavor.offered = is_said(object, "os-flavor-access:is_public", true) &&
                   is_said(object, "OS-FLV-DISABLED:disabled", false);
  if (const auto vgpus = flavor.extra_specs.find("resources:VGPU");
      vgpus != flavor.extra_specs.end()) {
    flavor.vgpus =
        std::clamp<std::int64_t>(parse_int<std::int64_t>(vgpus->second).value_or(0), 0, 1024);
  }
  return flavor;
}

Result<Server> server_of(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) {
    return fail(ErrorCode::kParse, "a server is not an object");
  }
  Server server;
  server.id = text_at(*object, "id", 255);
  if (server.id.empty()) {
    return fail(ErrorCode::kParse, "a server has no id");
  }
  server.status = text_at(*object, "status", kMaxStateBytes);
  if (server.status.empty()) {
    return fail(ErrorCode::kParse, "server {} has no status", printable(server.id, 64));
  }
  server.name = text_at(*object, "name");
  server.project_id = text_at(*object, "tenant_id");
  server.user_id = text_at(*object, "user_id");
  server.reservation_id = text_at(*object, "OS-EXT-SRV-ATTR:reservation_id");
  server.availability_zone = text_at(*object, "OS-EXT-AZ:availability_zone");
  server.metadata = texts_at(*object, "metadata");
  if (const json::array* tags = array_at(*object, "tags"); tags != nullptr) {
    for (const json::value& tag : *tags) {
      if (tag.is_string() && server.tags.size() < kMaxEntries) {
        server.tags.push_back(clean_text(view(tag.get_string()).substr(0, kMaxTextBytes)));
      }
    }
  }
  if (const json::value* state = object->if_contains("OS-EXT-STS:power_state");
      state != nullptr && state->is_int64()) {
    server.power_state = state->get_int64();
  }
  server.created_ms = time_at(*object, "created");
  server.updated_ms = time_at(*object, "updated");
  server.launched_ms = time_at(*object, "OS-SRV-USG:launched_at");
  server.terminated_ms = time_at(*object, "OS-SRV-USG:terminated_at");
  if (const json::object* flavor = object_at(*object, "flavor"); flavor != nullptr) {
    server.flavor = flavor_of(*flavor);
  }
  return server;
}

Named named_of(const json::object& object) {
  Named item{.id = text_at(object, "id", 255),
             .name = text_at(object, "name", 255),
             .domain_id = text_at(object, "domain_id", 255)};
  if (const json::value* enabled = object.if_contains("enabled");
      enabled != nullptr && enabled->is_bool()) {
    item.enabled = enabled->get_bool();
  }
  return item;
}

/// Whether the plain text is a number in JSON. Such text is a number in YAML's core schema, too.
bool is_json_number(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  return !error && value.is_number();
}

Result<json::value> to_value(const config::Node& node) {
  if (node.is_map()) {
    json::object object;
    for (const auto& [name, value] : node.entries()) {
      CEEMS_TRY(member, to_value(value));
      object[name] = std::move(member);
    }
    return object;
  }
  if (node.is_list()) {
    json::array array;
    for (const auto& item : node.items()) {
      CEEMS_TRY(element, to_value(item));
      array.push_back(std::move(element));
    }
    return array;
  }
  if (!node.present()) {
    return json::value(nullptr);
  }
  CEEMS_TRY(text, node.as_string());
  if (node.is_plain()) {
    if (text == "true" || text == "false") {
      return json::value(text == "true");
    }
    if (is_json_number(text)) {
      return json::parse(json::string_view(text.data(), text.size()));
    }
  }
  return json::value(json::string_view(text.data(), text.size()));
}

}  // namespace

std::optional<std::int64_t> parse_utc(std::string_view text) {
  if (text.size() > 40) {
    return std::nullopt;
  }
  if (text.ends_with('Z')) {
    text.remove_suffix(1);
  } else if (text.ends_with("+00:00")) {
    text.remove_suffix(6);
  }
  std::int64_t fraction_ms = 0;
  if (const std::size_t dot = text.find('.'); dot != std::string_view::npos) {
    std::string digits(text.substr(dot + 1));
    if (!is_number(digits)) {
      return std::nullopt;
    }
    digits.resize(3, '0');
    fraction_ms = parse_int<std::int64_t>(digits).value_or(0);
    text = text.substr(0, dot);
  }
  const auto seconds = parse_localz(std::string(text) + "+0000");
  if (!seconds || *seconds < 0) {
    return std::nullopt;
  }
  return *seconds + fraction_ms;
}

Result<ServerPage> parse_servers(std::string_view text) {
  MendedJson mended;
  CEEMS_TRY(document, parse_list(text, "servers", "servers_links", mended));
  const json::array* servers = array_at(document, "servers");
  if (servers == nullptr) {
    return fail(ErrorCode::kParse, "expected a list 'servers'");
  }
  ServerPage page;
  page.malformed = mended.left_out;
  page.first_problem = mended.first_problem;
  page.servers.reserve(servers->size());
  for (const json::value& value : *servers) {
    auto server = server_of(value);
    if (server) {
      page.servers.push_back(std::move(*server));
    } else if (page.malformed++ == 0) {
      page.first_problem = server.error().message;
    }
  }
  page.next_marker = next_marker(document, "servers_links");
  return page;
}

Result<FlavorPage> parse_flavors(std::string_view text) {
  MendedJson mended;
  CEEMS_TRY(document, parse_list(text, "flavors", "flavors_links", mended));
  const json::array* flavors = array_at(document, "flavors");
  if (flavors == nullptr) {
    return fail(ErrorCode::kParse, "expected a list 'flavors'");
  }
  FlavorPage page;
  for (const json::value& value : *flavors) {
    if (const json::object* object = value.if_object(); object != nullptr) {
      if (Flavor flavor = flavor_of(*object); !flavor.id.empty()) {
        page.flavors.push_back(std::move(flavor));
      }
    }
  }
  page.next_marker = next_marker(document, "flavors_links");
  return page;
}

Result<NamedPage> parse_named(std::string_view text, std::string_view key) {
  MendedJson mended;
  CEEMS_TRY(document, parse_list(text, key, "links", mended));
  const json::array* items = array_at(document, key);
  if (items == nullptr) {
    return fail(ErrorCode::kParse, "expected a list '{}'", key);
  }
  NamedPage page;
  for (const json::value& value : *items) {
    const json::object* object = value.if_object();
    Named item = object != nullptr ? named_of(*object) : Named{};
    if (!item.id.empty() && !item.name.empty()) {
      page.items.push_back(std::move(item));
    }
  }
  if (const json::object* links = object_at(document, "links"); links != nullptr) {
    page.next_marker = marker_of(text_at(*links, "next", 8192));
  }
  const json::value* truncated = document.if_contains("truncated");
  if (page.next_marker.empty() && truncated != nullptr && truncated->is_bool() &&
      truncated->get_bool()) {
    return fail(ErrorCode::kUnavailable, "Keystone cut off its list '{}' (list_limit)", key);
  }
  return page;
}

Result<Named> parse_one_named(std::string_view text, std::string_view key) {
  CEEMS_TRY(document, parse_object(text));
  const json::object* object = object_at(document, key);
  Named item = object != nullptr ? named_of(*object) : Named{};
  if (item.id.empty() || item.name.empty()) {
    return fail(ErrorCode::kParse, "expected an object '{}' with id and name", key);
  }
  return item;
}

std::optional<std::int64_t> token_lifetime(std::string_view text, std::int64_t now_ms) {
  const auto document = parse_object(text);
  if (!document) {
    return std::nullopt;
  }
  const json::object* token = object_at(*document, "token");
  if (token == nullptr) {
    return std::nullopt;
  }
  const auto expires = time_at(*token, "expires_at");
  if (!expires) {
    return std::nullopt;
  }
  const std::int64_t issued = time_at(*token, "issued_at").value_or(now_ms);
  return std::clamp<std::int64_t>((*expires - issued) / 1000, 0, kDay);
}

std::string error_message(std::string_view text) {
  if (text.size() > 65'536) {
    return {};
  }
  const auto document = parse_object(text);
  if (!document) {
    return {};
  }
  // Keystone: {"error": {"message"}}. Nova: one member named after the fault, {"forbidden": {...}}.
  for (const auto& [name, value] : *document) {
    if (const json::object* object = value.if_object(); object != nullptr) {
      if (const std::string message = text_at(*object, "message"); !message.empty()) {
        return printable(message, 200);
      }
    }
  }
  return {};
}

Result<std::string> to_json(const config::Node& node) {
  CEEMS_TRY(value, to_value(node));
  return json::serialize(value);
}

}  // namespace ceems::ingest::openstack
