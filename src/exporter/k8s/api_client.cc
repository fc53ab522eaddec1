#include "exporter/k8s/api_client.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include <boost/json.hpp>

#include "base/strings.h"
#include "exporter/source/privileged_open.h"
#include "host/read_file.h"
#include "kube/connection.h"
#include "kube/static_pod.h"
#include "net/client/client.h"

namespace ceems::exporter::k8s {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMaxPods = 200'000;
constexpr std::size_t kMaxText = 512;
constexpr std::size_t kMaxSecret = std::size_t{1} << 20U;
constexpr int kPageSize = 500;
constexpr std::size_t kMaxDepth = 64;

// Servers that cannot return metadata only send the whole pods.
constexpr std::string_view kMetadataOnly =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string() || value->get_string().size() > kMaxText) {
    return {};
  }
  return std::string(value->get_string().c_str(), value->get_string().size());
}

/// Not bounded as other texts are: without the token the rest of the list would be missing.
std::string next_page(const json::object& root) {
  const json::value* metadata = root.if_contains("metadata");
  const json::object* object = metadata == nullptr ? nullptr : metadata->if_object();
  const json::value* next = object == nullptr ? nullptr : object->if_contains("continue");
  return next == nullptr || !next->is_string()
             ? std::string()
             : std::string(next->get_string().data(), next->get_string().size());
}

const json::object* object_of(const json::object* parent, std::string_view key) {
  const json::value* value = parent == nullptr ? nullptr : parent->if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

/// The id by which a GPU is known, in the attributes of a device: uuid, else its PCI address.
std::string id_of(const json::object* attributes) {
  static constexpr std::array<std::string_view, 3> kNames = {"uuid", "pciBusID", "pciAddr"};
  for (const std::string_view wanted : kNames) {
    for (auto at = attributes->begin(); at != attributes->end(); ++at) {
      const std::string_view key(at->key().data(), at->key().size());
      const json::object* value = at->value().if_object();
      if (value != nullptr && key.substr(key.rfind('/') + 1) == wanted) {
        if (std::string text = text_of(*value, "string"); !text.empty()) {
          return text;
        }
      }
    }
  }
  return {};
}

/// Gets all pages of a list. `read` takes the body of one and returns the token of the next.
Result<> get_pages(const kube::ApiAccess& access,
                   const std::string& url,
                   std::string_view accept,
                   milliseconds timeout,
                   const std::stop_token& stop,
                   const std::function<Result<std::string>(std::string_view)>& read) {
  CEEMS_TRY_IN("API server of Kubernetes", options, kube::client_options(access, read_privileged));
  options.user_agent = "ceems_exporter";
  options.max_response_bytes = kMaxPodPage;
  options.connect_timeout = timeout;
  options.timeout = timeout;
  const auto deadline = steady_clock::now() + timeout;
  CEEMS_TRY_IN("API server of Kubernetes", client, net::Client::create(std::move(options)));
  const std::stop_callback on_stop(stop, [&client] { client->cancel(); });
  std::string next;
  do {
    CEEMS_TRY(answer,
              client->get(next.empty() ? url : url + "&continue=" + kube::percent_encode(next),
                          {{"Accept", std::string(accept)}}));
    if (answer.status != 200) {
      return fail(answer.status == 404 ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
                  "API server {}: HTTP status {}", printable(access.server), answer.status);
    }
    CEEMS_TRY(following, read(answer.body));
    next = std::move(following);
    if (!next.empty() && steady_clock::now() >= deadline) {
      return fail(ErrorCode::kTimeout,
                  "API server {}: too many pods for the time limit; is NODE_NAME set?",
                  printable(access.server));
    }
  } while (!next.empty());
  return {};
}

/// A node has few objects. The objects of a cluster come in pages.
std::string selector(const std::string& node) {
  return node.empty() ? fmt::format("limit={}", kPageSize)
                      : "fieldSelector=" + kube::percent_encode("spec.nodeName=" + node);
}

}  // namespace

Result<std::string> read_privileged(const std::string& path) {
  std::string text;
  CEEMS_TRY(fd, open_privileged(path.c_str()));
  CEEMS_TRY_IN(path, host::reread(fd, text, kMaxSecret));
  return text;
}

Result<PodPage> parse_pod_page(std::string_view json_text, std::string_view node) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code error;
  const json::value document =
      json::parse({json_text.data(), json_text.size()}, error, {}, options);
  if (error) {
    return fail(ErrorCode::kParse, "expected JSON: {}", error.message());
  }
  const json::object* root = document.if_object();
  const json::value* items = root == nullptr ? nullptr : root->if_contains("items");
  if (items == nullptr || !(items->is_array() || items->is_null())) {
    return fail(ErrorCode::kParse, "expected a list of pods in 'items'");
  }
  PodPage page{.pods = {}, .next = next_page(*root)};
  if (items->is_null()) {
    return page;
  }
  for (const json::value& item : items->get_array()) {
    const json::object* pod = item.if_object();
    const json::value* metadata = pod == nullptr ? nullptr : pod->if_contains("metadata");
    if (metadata == nullptr || !metadata->is_object()) {
      continue;
    }
    Pod found{.name_space = text_of(metadata->get_object(), "namespace"),
              .name = text_of(metadata->get_object(), "name"),
              .uid = text_of(metadata->get_object(), "uid"),
              .mirror_uid = {},
              .created = text_of(metadata->get_object(), "creationTimestamp")};
    if (auto uid = kube::static_pod_uid(metadata->get_object(), node);
        !uid.empty() && !found.uid.empty()) {
      found.mirror_uid = std::exchange(found.uid, std::move(uid));
    }
    if (!found.name.empty() && !found.uid.empty()) {
      page.pods.push_back(std::move(found));
    }
  }
  return page;
}

void settle_mirrors(std::vector<Pod>& pods) {
  std::map<std::string, Pod*, std::less<>> mirrors;  // by the UID of the static pod
  for (Pod& pod : pods) {
    if (pod.mirror_uid.empty()) {
      continue;
    }
    Pod*& first = mirrors[pod.uid];
    if (first == nullptr) {
      first = &pod;
      continue;
    }
    Pod& later = pod.created < first->created ? *std::exchange(first, &pod) : pod;
    later.uid = std::exchange(later.mirror_uid, {});
  }
}

Result<std::vector<Pod>> list_pods(const kube::ApiAccess& access,
                                   const std::string& node,
                                   milliseconds timeout,
                                   const std::stop_token& stop) {
  std::vector<Pod> pods;
  CEEMS_TRY(get_pages(access, access.server + "/api/v1/pods?" + selector(node), kMetadataOnly,
                      timeout, stop, [&](std::string_view body) -> Result<std::string> {
                        CEEMS_TRY_IN("pods of " + printable(access.server), page,
                                     parse_pod_page(body, node));
                        std::move(page.pods.begin(), page.pods.end(), std::back_inserter(pods));
                        if (pods.size() > kMaxPods) {
                          return fail(ErrorCode::kParse, "API server {}: more than {} pods",
                                      printable(access.server), kMaxPods);
                        }
                        return std::move(page.next);
                      }));
  settle_mirrors(pods);
  return pods;
}

Result<std::string> parse_slice_page(std::string_view json_text, SliceDevices& devices) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code error;
  const json::value document =
      json::parse({json_text.data(), json_text.size()}, error, {}, options);
  const json::object* root = document.if_object();
  const json::value* items = root == nullptr ? nullptr : root->if_contains("items");
  if (error || items == nullptr || !(items->is_array() || items->is_null())) {
    return fail(ErrorCode::kParse, "expected a list of resource slices in 'items'");
  }
  if (items->is_null()) {
    return next_page(*root);
  }
  for (const json::value& item : items->get_array()) {
    const json::object* spec = object_of(item.if_object(), "spec");
    const json::object* pool = object_of(spec, "pool");
    const json::value* list = spec == nullptr ? nullptr : spec->if_contains("devices");
    if (pool == nullptr || list == nullptr || !list->is_array()) {
      continue;
    }
    const std::string place = text_of(*spec, "driver") + "/" + text_of(*pool, "name") + "/";
    for (const json::value& one : list->get_array()) {
      const json::object* device = one.if_object();
      const json::object* basic = object_of(device, "basic");  // in v1beta1
      const json::object* attributes = object_of(basic == nullptr ? device : basic, "attributes");
      std::string id = attributes == nullptr ? std::string() : id_of(attributes);
      if (!id.empty() && devices.size() < kMaxPods) {
        devices[place + text_of(*device, "name")] = std::move(id);
      }
    }
  }
  return next_page(*root);
}

Result<SliceDevices> list_slice_devices(const kube::ApiAccess& access,
                                        const std::string& node,
                                        milliseconds timeout,
                                        const std::stop_token& stop) {
  SliceDevices devices;
  for (const char* const version : {"v1", "v1beta2", "v1beta1"}) {
    const auto done =
        get_pages(access,
                  fmt::format("{}/apis/resource.k8s.io/{}/resourceslices?{}", access.server,
                              version, selector(node)),
                  "application/json", timeout, stop,
                  [&devices](std::string_view body) { return parse_slice_page(body, devices); });
    if (done) {
      return devices;
    }
    if (done.error().code != ErrorCode::kNotFound) {
      return fail(done.error());
    }
  }
  return devices;
}

}  // namespace ceems::exporter::k8s
