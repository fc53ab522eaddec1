#include "admission/review.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <boost/json.hpp>

#include "base/json.h"
#include "base/strings.h"
#include "crypto/base64.h"

namespace ceems::admission {
namespace {

namespace json = boost::json;

/// Objects of Kubernetes nest about ten levels deep, free-form ones of custom resources deeper.
constexpr std::size_t kMaxDepth = 256;

/// A JSON document. Its memory is allocated in blocks that are freed with it.
class Document {
 public:
  explicit Document(std::string_view text) : root_(parse(text)) {}

  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] const json::object* object() const { return root_.if_object(); }

 private:
  json::value parse(std::string_view text) {
    json::parse_options options;
    options.max_depth = kMaxDepth;
    json::error_code error;
    json::value root = json::parse({text.data(), text.size()}, error, &memory_, options);
    if (error) {
      error_ = error.message();
    }
    return root;
  }

  std::string error_;
  json::monotonic_resource memory_;
  json::value root_;  // last, because its construction uses the other members
};

const json::value* member(const json::object* parent, std::string_view key) {
  const json::value* value = parent == nullptr ? nullptr : parent->if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}
const json::object* object_of(const json::object* parent, std::string_view key) {
  const json::value* value = member(parent, key);
  return value == nullptr ? nullptr : value->if_object();
}
std::string text_of(const json::object* parent, std::string_view key) {
  const json::value* value = member(parent, key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

std::unexpected<Error> unreadable(std::string_view what) {
  return fail(ErrorCode::kParse, "could not deserialize object: {}", what);
}

/// The annotations of `metadata`, which may be null.
Result<Annotations> read_annotations(const json::object* metadata) {
  Annotations annotations;
  const json::value* const value = member(metadata, "annotations");
  if (value == nullptr) {
    return annotations;
  }
  if (!value->is_object()) {
    return unreadable("expected a mapping in 'annotations'");
  }
  for (const auto& entry : value->get_object()) {
    const json::string* const text = entry.value().if_string();
    if (text == nullptr) {
      return unreadable("expected texts in 'annotations'");
    }
    annotations.emplace(std::string(entry.key().data(), entry.key().size()),
                        std::string(text->data(), text->size()));
  }
  return annotations;
}

/// Reads the annotations of an object or template, before and after the request. `path` leads to
/// it.
Result<Place> read_place(const json::object& now,
                         const json::object* old,
                         const std::string& path) {
  const json::value* const metadata = member(&now, "metadata");
  if (metadata != nullptr && !metadata->is_object()) {
    return unreadable("expected a mapping in 'metadata'");
  }
  auto annotations = read_annotations(object_of(&now, "metadata"));
  auto before = read_annotations(object_of(old, "metadata"));
  if (!annotations || !before) {
    return fail(std::move(annotations ? before : annotations).error());
  }
  return Place{.path = path + "/metadata/annotations",
               .has_parent = metadata != nullptr,
               .annotations = std::move(*annotations),
               .old = std::move(*before),
               .changed = old == nullptr || now != *old};
}

std::string pointer_part(std::string_view key) {
  std::string out = "/";
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

/// The way to the templates of an object.
struct Way {
  const std::vector<std::string>& path;
  std::vector<Place>& found;
};

Result<> find_templates(const json::value& now,
                        const json::value* old,
                        std::size_t depth,
                        const std::string& pointer,
                        const Way& way);

Result<> follow_member(const json::value& now,
                       const json::value* old,
                       std::string_view key,
                       std::size_t depth,
                       const std::string& pointer,
                       const Way& way) {
  const json::value* before = nullptr;
  if (const json::object* object = old == nullptr ? nullptr : old->if_object()) {
    before = object->if_contains(key);
  }
  return find_templates(now, before, depth + 1, pointer + pointer_part(key), way);
}

Result<> follow_all(const json::value& now,
                    const json::value* old,
                    std::size_t depth,
                    const std::string& pointer,
                    const Way& way) {
  Result<> done;
  if (const json::object* object = now.if_object()) {
    for (auto entry = object->begin(); done && entry != object->end(); ++entry) {
      done = follow_member(entry->value(), old, entry->key(), depth, pointer, way);
    }
  } else if (const json::array* list = now.if_array()) {
    const json::array* const before = old == nullptr ? nullptr : old->if_array();
    for (std::size_t i = 0; done && i < list->size(); ++i) {
      const json::value* one = before != nullptr && i < before->size() ? &(*before)[i] : nullptr;
      done = find_templates((*list)[i], one, depth + 1, pointer + "/" + std::to_string(i), way);
    }
  }
  return done;
}

/// Adds the templates below `now`, which is at `depth` of the path.
Result<> find_templates(const json::value& now,
                        const json::value* old,
                        std::size_t depth,
                        const std::string& pointer,
                        const Way& way) {
  constexpr std::size_t kMaxTemplates = 1000;
  if (depth == way.path.size()) {
    const json::object* const object = now.if_object();
    if (object == nullptr) {
      return unreadable("expected a template of pods at " + pointer);
    }
    CEEMS_TRY(place, read_place(*object, old == nullptr ? nullptr : old->if_object(), pointer));
    if (way.found.size() == kMaxTemplates) {
      return unreadable("too many templates");
    }
    way.found.push_back(std::move(place));
    return {};
  }
  const std::string& key = way.path[depth];
  if (key == "*") {
    return follow_all(now, old, depth, pointer, way);
  }
  const json::value* const next = member(now.if_object(), key);
  return next == nullptr ? Result<>() : follow_member(*next, old, key, depth, pointer, way);
}

bool has_controller(const json::object* metadata) {
  const json::value* const owners = member(metadata, "ownerReferences");
  const json::array* const list = owners == nullptr ? nullptr : owners->if_array();
  return list != nullptr && std::ranges::any_of(*list, [](const json::value& owner) {
           const json::value* const controls = member(owner.if_object(), "controller");
           return controls != nullptr && controls->is_bool() && controls->get_bool();
         });
}

/// The API server never leaves out the template of its own kinds. The reference takes a missing one
/// for an empty one.
Place empty_template(const Workload& workload, bool has_old) {
  Place place;
  for (const std::string& part : workload.path) {
    place.path += pointer_part(part);
  }
  place.path += "/metadata/annotations";
  place.changed = !has_old;
  return place;
}

Result<Object> read_object(const json::object* request, const std::vector<Workload>& workloads) {
  const json::object* const now = object_of(request, "object");
  const json::object* const old = object_of(request, "oldObject");
  if (now == nullptr) {
    return unreadable("expected an object");
  }
  const std::string version = text_of(now, "apiVersion");
  const std::string kind = text_of(now, "kind");
  const std::size_t slash = version.find('/');
  const std::string group = slash == std::string::npos ? "" : version.substr(0, slash);
  Object object;
  const auto is_this = [&](const Workload& workload) {
    return workload.kind == kind && workload.group == group;
  };
  const bool pod = group.empty() && kind == "Pod";
  if (!pod && std::ranges::none_of(workloads, is_this)) {
    return object;
  }
  object.kind = pod ? Kind::kPod : Kind::kWorkload;
  object.has_old = old != nullptr;
  object.controlled = has_controller(object_of(now, "metadata"));
  CEEMS_TRY(top, read_place(*now, old, ""));
  object.top = std::move(top);
  const json::value* const before = old == nullptr ? nullptr : request->if_contains("oldObject");
  for (const Workload& workload : workloads) {
    const bool again = std::ranges::any_of(workloads.data(), &workload, [&](const Workload& other) {
      return is_this(other) && other.path == workload.path;
    });
    if (!is_this(workload) || again) {
      continue;
    }
    object.builtin = object.builtin && workload.builtin;
    const Way way{.path = workload.path, .found = object.templates};
    CEEMS_TRY(find_templates(request->at("object"), before, 0, "", way));
    if (workload.builtin && object.templates.empty()) {
      object.templates.push_back(empty_template(workload, old != nullptr));
    }
    if (!workload.made.empty()) {
      const Way to_made{.path = workload.made, .found = object.made};
      CEEMS_TRY(find_templates(request->at("object"), before, 0, "", to_made));
    }
  }
  return object;
}

Operation operation_of(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Operation>, 4> kOperations = {
      std::pair("CREATE", Operation::kCreate), std::pair("UPDATE", Operation::kUpdate),
      std::pair("DELETE", Operation::kDelete), std::pair("CONNECT", Operation::kConnect)};
  for (const auto& [name, operation] : kOperations) {
    if (name == text) {
      return operation;
    }
  }
  return Operation::kUnknown;
}

Caller read_caller(const json::object* user) {
  Caller caller{.name = text_of(user, "username"), .uid = text_of(user, "uid")};
  const json::value* const groups = member(user, "groups");
  if (const json::array* list = groups == nullptr ? nullptr : groups->if_array()) {
    for (const json::value& group : *list) {
      if (const json::string* text = group.if_string()) {
        caller.groups.emplace_back(text->data(), text->size());
      }
    }
  }
  return caller;
}

/// The checks of the envelope, in the order and with the texts of the reference.
Result<> check_type(const Document& document, const std::string& version) {
  const json::object* const root = document.object();
  const std::string kind = text_of(root, "kind");
  if (!document.error().empty() || root == nullptr || kind.empty()) {
    return fail(ErrorCode::kParse, "could not deserialize request: {}",
                !document.error().empty() ? document.error()
                : root == nullptr         ? "expected an object"
                                          : "Object 'Kind' is missing");
  }
  if (version.empty()) {
    return fail(ErrorCode::kParse, "could not deserialize request: Object 'apiVersion' is missing");
  }
  const std::string group = version.substr(0, version.find('/'));
  if (group != "v1" && group != "apps" && group != "batch" && group != "admission.k8s.io") {
    return fail(ErrorCode::kParse,
                "could not deserialize request: no kind \"{}\" is registered for version \"{}\"",
                printable(kind), printable(version));
  }
  if (kind != "AdmissionReview" ||
      (version != "admission.k8s.io/v1" && version != "admission.k8s.io/v1beta1")) {
    return fail(ErrorCode::kParse, "unsupported group version kind");
  }
  return {};
}

}  // namespace

Result<Review> parse_review(std::string_view text, const std::vector<Workload>& workloads) {
  const Document document(text);
  Review review{.api_version = text_of(document.object(), "apiVersion")};
  CEEMS_TRY(check_type(document, review.api_version));
  const json::object* const request = object_of(document.object(), "request");
  if (request == nullptr) {
    return fail(ErrorCode::kParse, "malformed admission review: request is nil");
  }
  review.uid = text_of(request, "uid");
  review.operation_text = text_of(request, "operation");
  review.operation = operation_of(review.operation_text);
  review.caller = read_caller(object_of(request, "userInfo"));
  review.name_space = text_of(request, "namespace");
  review.name = text_of(request, "name");
  if (review.operation == Operation::kCreate || review.operation == Operation::kUpdate) {
    review.object = read_object(request, workloads);
  }
  return review;
}

namespace {

void write_annotations(JsonWriter& json, const Annotations& annotations) {
  json.begin_object();
  for (const auto& [name, value] : annotations) {
    json.member(name, value);
  }
  json.end_object();
}

std::string patch_json(const std::vector<PatchOperation>& patch) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const PatchOperation& operation : patch) {
    json.begin_object().member("op", "add").member("path", operation.path).member("from", "");
    json.key("value");
    if (operation.wrapped) {
      json.begin_object().key("annotations");
    }
    write_annotations(json, operation.annotations);
    if (operation.wrapped) {
      json.end_object();
    }
    json.end_object();
  }
  json.end_array();
  return out;
}

}  // namespace

std::string answer_json(std::string_view api_version,
                        std::string_view uid,
                        const Verdict& verdict) {
  constexpr int kForbidden = 403;
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("kind", "AdmissionReview").member("apiVersion", api_version);
  json.key("response").begin_object().member("uid", uid).member("allowed", verdict.allowed);
  json.key("status").begin_object().key("metadata").begin_object().end_object();
  if (!verdict.message.empty()) {
    json.member("message", verdict.message);
  }
  if (verdict.refused) {
    json.member("reason", "Forbidden").member("code", kForbidden);
  }
  json.end_object();
  if (!verdict.patch.empty()) {
    json.member("patch", crypto::base64_encode(patch_json(verdict.patch)));
    json.member("patchType", "JSONPatch");
  }
  json.end_object().end_object();
  out += '\n';
  return out;
}

}  // namespace ceems::admission
