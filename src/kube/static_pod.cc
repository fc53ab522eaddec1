#include "kube/static_pod.h"

#include <cstddef>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace ceems::kube {
namespace {

namespace json = boost::json;

std::string_view text_of(const json::object& object, std::string_view key) {
  const json::value* const value = object.if_contains({key.data(), key.size()});
  const json::string* const text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string_view() : std::string_view(text->data(), text->size());
}

/// The node that is the only owner of an object; empty if it has another one.
std::string_view owning_node(const json::object& metadata) {
  const json::value* const owners = metadata.if_contains("ownerReferences");
  if (owners == nullptr || !owners->is_array() || owners->get_array().size() != 1) {
    return {};
  }
  const json::object* const owner = owners->get_array().front().if_object();
  if (owner == nullptr || text_of(*owner, "apiVersion") != "v1" ||
      text_of(*owner, "kind") != "Node") {
    return {};
  }
  const json::value* const controls = owner->if_contains("controller");
  const bool controller = controls != nullptr && controls->is_bool() && controls->get_bool();
  return controller ? text_of(*owner, "name") : std::string_view();
}

}  // namespace

std::string static_pod_uid(const json::object& metadata, std::string_view node) {
  constexpr std::size_t kLength = 32;
  const json::value* const found = metadata.if_contains("annotations");
  const json::object* const annotations = found == nullptr ? nullptr : found->if_object();
  if (annotations == nullptr) {
    return {};
  }
  const std::string_view hash = text_of(*annotations, "kubernetes.io/config.hash");
  if (hash.size() != kLength || hash != text_of(*annotations, "kubernetes.io/config.mirror") ||
      hash.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return {};
  }
  const std::string_view owner = owning_node(metadata);
  const bool fits = !owner.empty() && (node.empty() || node == owner) &&
                    text_of(metadata, "name").ends_with(fmt::format("-{}", owner));
  return fits ? std::string(hash) : std::string();
}

}  // namespace ceems::kube
