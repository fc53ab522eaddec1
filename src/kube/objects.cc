#include "kube/objects.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <boost/json.hpp>

#include "base/json_cutter.h"
#include "base/json_reader.h"
#include "base/strings.h"
#include "base/time/rfc3339.h"
#include "kube/quantity.h"
#include "kube/static_pod.h"

namespace ceems::kube {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 128;
constexpr std::size_t kMaxTextBytes = 1024;
constexpr std::size_t kMaxTokenBytes = std::size_t{64} << 10U;
constexpr std::size_t kMaxResources = 64;
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

json::value parse_json(std::string_view text,
                       json::monotonic_resource& memory,
                       std::string& problem) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code error;
  json::value root = json::parse({text.data(), text.size()}, error, &memory, options);
  if (error) {
    problem = error.message();
  }
  return root;
}

/// A JSON document. Its memory is allocated in blocks that are freed with it.
class Document {
 public:
  explicit Document(std::string_view text) : root_(parse_json(text, memory_, error_)) {}

  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] const json::object* object() const { return root_.if_object(); }

 private:
  std::string error_;
  json::monotonic_resource memory_;
  json::value root_;  // last, because its construction uses the other members
};

/// Returns a member as an object; null if `parent` is null or the member is missing or not an
/// object.
const json::object* object_of(const json::object* parent, std::string_view key) {
  const json::value* value = parent == nullptr ? nullptr : parent->if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}
const json::array* array_of(const json::object* parent, std::string_view key) {
  const json::value* value = parent == nullptr ? nullptr : parent->if_contains(key);
  return value == nullptr ? nullptr : value->if_array();
}
std::string_view view_of(const json::object* parent, std::string_view key) {
  const json::value* value = parent == nullptr ? nullptr : parent->if_contains(key);
  if (value == nullptr || !value->is_string()) {
    return {};
  }
  return {value->get_string().data(), value->get_string().size()};
}
std::string text_of(const json::object* parent,
                    std::string_view key,
                    std::size_t max_bytes = kMaxTextBytes) {
  const std::string_view text = view_of(parent, key);
  return std::string(text.size() > max_bytes ? std::string_view() : text);
}
std::int64_t time_of(const json::object* parent, std::string_view key) {
  return parse_rfc3339_ms(view_of(parent, key)).value_or(0);
}

TextMap text_map(const json::object* members, std::size_t& left) {
  TextMap map;
  if (members == nullptr) {
    return map;
  }
  for (const auto& member : *members) {
    const std::string_view key(member.key().data(), member.key().size());
    const json::string* const text = member.value().if_string();
    if (text == nullptr) {
      continue;
    }
    const std::string_view value(text->data(), text->size());
    if (value.size() > kMaxMapValueBytes || key == kLastApplied ||
        key.size() + value.size() > left) {
      continue;
    }
    left -= key.size() + value.size();
    map.emplace(key, value);
  }
  return map;
}

/// Reads a quantity, which is a number or a string with a suffix.
std::optional<double> quantity_of(const json::value& value) {
  if (value.is_string()) {
    return parse_quantity({value.get_string().data(), value.get_string().size()});
  }
  if (!value.is_number()) {
    return std::nullopt;
  }
  const double number = value.to_number<double>();
  return std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

bool is_extended(std::string_view resource) {
  return resource.find('/') != std::string_view::npos;
}

/// What of the resources of a container counts.
enum class Resources { kLimits, kRequests, kReserved };

/// Adds the members of `kind`, which is "limits" or "requests", but not the members of `except`.
void add_members(const json::object* container,
                 std::string_view kind,
                 const json::object* except,
                 std::map<std::string, double, std::less<>>& limits) {
  const json::object* members = object_of(object_of(container, "resources"), kind);
  if (members == nullptr) {
    return;
  }
  for (const auto& member : *members) {
    const std::string_view name(member.key().data(), member.key().size());
    if (except != nullptr && except->contains(member.key())) {
      continue;
    }
    const auto quantity = quantity_of(member.value());
    const auto known = limits.find(name);
    if (!quantity || name.size() > kMaxTextBytes) {
      continue;
    }
    if (known != limits.end()) {
      known->second += *quantity;
    } else if (limits.size() < kMaxResources) {
      limits.emplace(name, *quantity);
    }
  }
}

void add_limits(const json::object* container,
                Resources kind,
                std::map<std::string, double, std::less<>>& limits) {
  if (kind != Resources::kRequests) {
    add_members(container, "limits", nullptr, limits);
  }
  if (kind != Resources::kLimits) {
    const json::object* const resources = object_of(container, "resources");
    add_members(container, "requests",
                kind == Resources::kReserved ? object_of(resources, "limits") : nullptr, limits);
  }
}

std::map<std::string, double, std::less<>> limits_of(const json::object* spec, Resources kind) {
  std::map<std::string, double, std::less<>> limits;
  for (const std::string_view list : {"containers", "initContainers"}) {
    const json::array* const containers = array_of(spec, list);
    if (containers == nullptr) {
      continue;
    }
    for (const json::value& item : *containers) {
      const json::object* const container = item.if_object();
      if (list == "containers" || view_of(container, "restartPolicy") == "Always") {
        add_limits(container, kind, limits);
      }
    }
  }
  std::map<std::string, double, std::less<>> of_pod;
  add_limits(spec, kind, of_pod);
  for (const auto& [name, quantity] : of_pod) {
    if (!is_extended(name) || !limits.contains(name)) {
      limits[name] = quantity;
    }
  }
  return limits;
}

void read_containers(const json::object* status, Pod& pod) {
  const json::array* containers = array_of(status, "containerStatuses");
  if (containers == nullptr) {
    return;
  }
  bool all_ended = true;
  std::int64_t end = 0;
  for (const json::value& container : *containers) {
    const json::object* terminated =
        object_of(object_of(container.if_object(), "state"), "terminated");
    all_ended = all_ended && terminated != nullptr;
    end = std::max(end, time_of(terminated, "finishedAt"));
    pod.out_of_memory = pod.out_of_memory || view_of(terminated, "reason") == "OOMKilled";
  }
  pod.finished_ms = all_ended ? end : 0;
}

void read_ready(const json::object* status, Pod& pod) {
  const json::array* conditions = array_of(status, "conditions");
  if (conditions == nullptr) {
    return;
  }
  for (const json::value& item : *conditions) {
    const json::object* condition = item.if_object();
    if (view_of(condition, "type") != "Ready") {
      continue;
    }
    const bool ready = view_of(condition, "status") == "True";
    pod.ready = ready ? "Ready" : text_of(condition, "reason");
    pod.unready_ms = ready ? 0 : time_of(condition, "lastTransitionTime");
  }
}

/// Returns nothing if the object has no UID.
std::optional<Pod> read_pod(const json::object* object) {
  const json::object* metadata = object_of(object, "metadata");
  const json::object* status = object_of(object, "status");
  Pod pod{.uid = text_of(metadata, "uid"),
          .name = text_of(metadata, "name"),
          .name_space = text_of(metadata, "namespace")};
  if (pod.uid.empty()) {
    return std::nullopt;
  }
  if (auto uid = static_pod_uid(*metadata, view_of(object_of(object, "spec"), "nodeName"));
      !uid.empty()) {
    pod.mirror_uid = std::exchange(pod.uid, std::move(uid));
  }
  std::size_t left = kMaxMapBytes;
  pod.annotations = text_map(object_of(metadata, "annotations"), left);
  pod.labels = text_map(object_of(metadata, "labels"), left);
  pod.created_ms = time_of(metadata, "creationTimestamp");
  pod.deletion_ms = time_of(metadata, "deletionTimestamp");
  pod.start_ms = time_of(status, "startTime");
  read_containers(status, pod);
  pod.phase = text_of(status, "phase");
  pod.qos = text_of(status, "qosClass");
  read_ready(status, pod);
  const json::array* const claims = array_of(object_of(object, "spec"), "resourceClaims");
  pod.has_claims = claims != nullptr && !claims->empty();
  pod.limits = limits_of(object_of(object, "spec"), Resources::kLimits);
  pod.requests = limits_of(object_of(object, "spec"), Resources::kRequests);
  pod.reserved = limits_of(object_of(object, "spec"), Resources::kReserved);
  return pod;
}

/// Returns the items of a list, or an error if the document is not a list.
Result<const json::array*> items_of(const Document& document) {
  static const json::array kNone;
  if (!document.error().empty()) {
    return fail(ErrorCode::kParse, "invalid JSON: {}", document.error());
  }
  const json::value* items =
      document.object() == nullptr ? nullptr : document.object()->if_contains("items");
  if (items != nullptr && items->is_null()) {
    return &kNone;  // Go writes an empty list as null
  }
  if (items == nullptr || !items->is_array()) {
    return fail(ErrorCode::kParse, "expected a list in 'items'");
  }
  return &items->get_array();
}

/// One part of a list that the API server sends in parts.
struct Part {
  const json::array* items = nullptr;  ///< points into the document
  std::string next;                    ///< token of the next part; empty if this is the last
};

Result<Part> part_of(const Document& document) {
  CEEMS_TRY(items, items_of(document));
  const std::string_view next = view_of(object_of(document.object(), "metadata"), "continue");
  if (next.size() > kMaxTokenBytes) {
    return fail(ErrorCode::kParse, "the token in 'continue' is too long: {} bytes", next.size());
  }
  return Part{.items = items, .next = std::string(next)};
}

Result<PodList> read_pods(const Document& document) {
  CEEMS_TRY(part, part_of(document));
  PodList list;
  list.next = std::move(part.next);
  list.resource_version = text_of(object_of(document.object(), "metadata"), "resourceVersion");
  list.pods.reserve(part.items->size());
  for (const json::value& item : *part.items) {
    if (auto pod = read_pod(item.if_object())) {
      list.pods.push_back(*std::move(pod));
    } else {
      ++list.malformed;
    }
  }
  return list;
}

}  // namespace

Result<PodList> parse_pod_list(std::string_view text) {
  const Document document(text);
  if (document.error().empty()) {
    return read_pods(document);
  }
  // A pod that is not valid JSON costs that pod only.
  const auto mended = mend_json(text, {"metadata", "items"});
  if (!mended) {
    return fail(ErrorCode::kParse, "invalid JSON: {}", document.error());
  }
  CEEMS_TRY(list, read_pods(Document(mended->text)));
  if (list.resource_version.empty()) {
    return fail(ErrorCode::kParse, "invalid JSON: {}", document.error());
  }
  list.malformed += mended->left_out;
  return list;
}

Result<WatchEvent> parse_watch_line(std::string_view text) {
  const Document document(text);
  if (!document.error().empty()) {
    std::string clean;  // a lone surrogate becomes U+FFFD
    if (append_json_object(clean, text) && clean != text) {
      return parse_watch_line(clean);
    }
    return fail(ErrorCode::kParse, "invalid JSON: {}", document.error());
  }
  const std::string_view type = view_of(document.object(), "type");
  const json::object* object = object_of(document.object(), "object");
  if (object == nullptr) {
    return fail(ErrorCode::kParse, "expected an event with an 'object'");
  }
  WatchEvent event;
  if (type == "ERROR") {
    event.message = printable(view_of(object, "message"), 300);
    if (const json::value* code = object->if_contains("code");
        code != nullptr && code->is_int64() && code->get_int64() > 0 && code->get_int64() < 1000) {
      event.status = static_cast<int>(code->get_int64());
    }
    return event;
  }
  event.resource_version = text_of(object_of(object, "metadata"), "resourceVersion");
  if (type == "BOOKMARK") {
    event.type = WatchEvent::Type::kBookmark;
    return event;
  }
  if (type == "ADDED") {
    event.type = WatchEvent::Type::kAdded;
  } else if (type == "MODIFIED") {
    event.type = WatchEvent::Type::kModified;
  } else if (type == "DELETED") {
    event.type = WatchEvent::Type::kDeleted;
  } else {
    return fail(ErrorCode::kParse, "unknown event type '{}'", printable(type));
  }
  auto pod = read_pod(object);
  if (!pod) {
    return fail(ErrorCode::kNoData, "the pod has no UID");
  }
  event.pod = *std::move(pod);
  return event;
}

Result<RoleBindingList> parse_role_bindings(std::string_view text) {
  const Document document(text);
  CEEMS_TRY(part, part_of(document));
  RoleBindingList list;
  list.next = std::move(part.next);
  list.bindings = part.items->size();
  for (const json::value& item : *part.items) {
    const std::string name_space = text_of(object_of(item.if_object(), "metadata"), "namespace");
    const json::array* subjects = array_of(item.if_object(), "subjects");
    if (name_space.empty() || subjects == nullptr) {
      continue;
    }
    for (const json::value& value : *subjects) {
      const json::object* subject = value.if_object();
      std::string name = text_of(subject, "name");
      if (view_of(subject, "kind") == "User" && !name.empty()) {
        list.users.push_back({.name_space = name_space, .user = std::move(name)});
      }
    }
  }
  return list;
}

Result<ResourceClaimList> parse_resource_claims(std::string_view text) {
  constexpr std::size_t kMaxDevices = 4096;  // of one claim; Kubernetes allows 32
  const Document document(text);
  CEEMS_TRY(part, part_of(document));
  ResourceClaimList list;
  list.next = std::move(part.next);
  for (const json::value& item : *part.items) {
    const json::object* status = object_of(item.if_object(), "status");
    const json::array* results =
        array_of(object_of(object_of(status, "allocation"), "devices"), "results");
    const json::array* users = array_of(status, "reservedFor");
    // The scheduler makes such a claim for a resource that is in the limits of the pod already.
    const bool of_limits =
        view_of(object_of(object_of(item.if_object(), "metadata"), "annotations"),
                "resource.kubernetes.io/extended-resource-claim") == "true";
    if (results == nullptr || users == nullptr || results->size() > kMaxDevices || of_limits) {
      continue;
    }
    std::map<std::string, double> counts;  // by driver
    for (const json::value& result : *results) {
      // Monitoring may look at devices that others hold.
      const json::value* const admin =
          result.if_object() == nullptr ? nullptr : result.if_object()->if_contains("adminAccess");
      if (admin == nullptr || !admin->is_bool() || !admin->get_bool()) {
        counts[text_of(result.if_object(), "driver")] += 1;
      }
    }
    for (const json::value& user : *users) {
      if (view_of(user.if_object(), "resource") != "pods") {
        continue;
      }
      for (const auto& [driver, count] : counts) {
        list.devices.push_back(
            {.pod_uid = text_of(user.if_object(), "uid"), .driver = driver, .count = count});
      }
    }
  }
  return list;
}

std::string status_message(std::string_view text) {
  const Document document(text);
  if (view_of(document.object(), "kind") != "Status") {
    return {};
  }
  return printable(view_of(document.object(), "message"), 300);
}

Result<ExecCredential> parse_exec_credential(std::string_view text) {
  const Document document(text);
  const json::object* status = object_of(document.object(), "status");
  if (!document.error().empty() || view_of(document.object(), "kind") != "ExecCredential" ||
      status == nullptr) {
    return fail(ErrorCode::kParse, "expected an ExecCredential with a status in JSON");
  }
  ExecCredential credential{.token = text_of(status, "token", kMaxTokenBytes),
                            .client_cert = text_of(status, "clientCertificateData", kMaxTokenBytes),
                            .client_key = text_of(status, "clientKeyData", kMaxTokenBytes),
                            .expires_ms = time_of(status, "expirationTimestamp")};
  if (credential.token.empty() &&
      (credential.client_cert.empty() || credential.client_key.empty())) {
    return fail(ErrorCode::kParse, "expected a token or a client certificate with its key");
  }
  return credential;
}

}  // namespace ceems::kube
