#include "exporter/k8s/pod_devices.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

#include <boost/json.hpp>

#include "base/strings.h"
#include "exporter/source/privileged_open.h"
#include "host/read_file.h"
#include "kube/connection.h"
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
constexpr std::string_view kAccept =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string() || value->get_string().size() > kMaxText) {
    return {};
  }
  return std::string(value->get_string().c_str(), value->get_string().size());
}

constexpr std::size_t kMaxUid = 96;

bool is_uid(std::string_view text) {
  return !text.empty() && text.size() <= kMaxUid && has_only_words(text, "-_.");
}

std::string full_name(std::string_view name_space, std::string_view name) {
  std::string full(name_space);
  full += '\0';
  full += name;
  return full;
}

}  // namespace

Result<std::string> read_privileged(const std::string& path) {
  std::string text;
  CEEMS_TRY(fd, open_privileged(path.c_str()));
  CEEMS_TRY_IN(path, host::reread(fd, text, kMaxSecret));
  return text;
}

Result<PodPage> parse_pod_page(std::string_view json_text) {
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
  PodPage page;
  if (const json::value* metadata = root->if_contains("metadata");
      metadata != nullptr && metadata->is_object()) {
    // If the token is too long for text_of(), this is an error, because the rest of the list would
    // be missing.
    if (const json::value* next = metadata->get_object().if_contains("continue");
        next != nullptr && next->is_string()) {
      page.next.assign(next->get_string().data(), next->get_string().size());
    }
  }
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
              .uid = text_of(metadata->get_object(), "uid")};
    if (!found.name.empty() && !found.uid.empty()) {
      page.pods.push_back(std::move(found));
    }
  }
  return page;
}

Result<std::vector<Pod>> list_pods(const kube::ApiAccess& access,
                                   const std::string& node,
                                   milliseconds timeout,
                                   const std::stop_token& stop) {
  CEEMS_TRY_IN("API server of Kubernetes", options, kube::client_options(access, read_privileged));
  options.user_agent = "ceems_exporter";
  options.max_response_bytes = kMaxPodPage;
  options.connect_timeout = timeout;
  options.timeout = timeout;
  const auto deadline = steady_clock::now() + timeout;
  CEEMS_TRY_IN("API server of Kubernetes", client, net::Client::create(std::move(options)));
  const std::stop_callback on_stop(stop, [&client] { client->cancel(); });
  // A node has few pods. The pods of a cluster come in pages.
  const std::string url =
      access.server + "/api/v1/pods?" +
      (node.empty() ? fmt::format("limit={}", kPageSize)
                    : "fieldSelector=" + kube::percent_encode("spec.nodeName=" + node));
  std::vector<Pod> pods;
  std::string next;
  do {
    CEEMS_TRY(answer,
              client->get(next.empty() ? url : url + "&continue=" + kube::percent_encode(next),
                          {{"Accept", std::string(kAccept)}}));
    if (answer.status != 200) {
      return fail(ErrorCode::kUnavailable, "API server {}: HTTP status {}",
                  printable(access.server), answer.status);
    }
    CEEMS_TRY_IN("pods of " + printable(access.server), page, parse_pod_page(answer.body));
    std::move(page.pods.begin(), page.pods.end(), std::back_inserter(pods));
    if (pods.size() > kMaxPods) {
      return fail(ErrorCode::kParse, "API server {}: more than {} pods", printable(access.server),
                  kMaxPods);
    }
    next = std::move(page.next);
    if (!next.empty() && steady_clock::now() >= deadline) {
      return fail(ErrorCode::kTimeout,
                  "API server {}: too many pods for the time limit; is NODE_NAME set?",
                  printable(access.server));
    }
  } while (!next.empty());
  return pods;
}

std::vector<gpu::Claim> join_pods(const std::vector<PodDevices>& devices,
                                  const std::vector<Pod>& pods) {
  std::unordered_map<std::string, const Pod*> by_full_name;
  std::unordered_map<std::string_view, const Pod*> by_name;
  for (const Pod& pod : pods) {
    if (is_uid(pod.uid)) {
      by_full_name[full_name(pod.name_space, pod.name)] = &pod;
      by_name[pod.name] = &pod;
    }
  }
  std::map<std::string_view, gpu::Claim> claims;
  for (const PodDevices& held : devices) {
    const Pod* pod = nullptr;
    if (const auto found = by_full_name.find(full_name(held.name_space, held.name));
        found != by_full_name.end()) {
      pod = found->second;
    } else if (const auto other = by_name.find(held.name); other != by_name.end()) {
      pod = other->second;
    }
    if (pod == nullptr || held.device_ids.empty()) {
      continue;
    }
    gpu::Claim& claim = claims[pod->uid];
    claim.uuid = pod->uid;
    claim.evidence = gpu::Evidence::kManager;
    for (const std::string& id : held.device_ids) {
      claim.device_ids.push_back(to_lower(std::string_view(id).substr(0, id.find("::"))));
    }
  }
  std::vector<gpu::Claim> result;
  result.reserve(claims.size());
  for (auto& [uid, claim] : claims) {
    result.push_back(std::move(claim));
  }
  return result;
}

PodClaims::PodClaims(PodClaimOptions options, const Clock& clock)
    : capabilities_(std::move(options.capabilities)),
      source_("k8s", "devices of pods", options.times, clock, std::move(options.fetch)) {}

Result<std::vector<gpu::Claim>> PodClaims::claims(const UnitSnapshot& snapshot) {
  std::vector<std::string> uuids;
  for (const Unit& unit : snapshot.units) {
    if (!unit.ended) {
      uuids.push_back(unit.uuid);
    }
  }
  std::ranges::sort(uuids);
  const auto claims = source_.value(uuids);
  const std::string error = source_.last_error();
  if (claims == nullptr) {
    return fail(ErrorCode::kNoData, "devices of pods: {}", error.empty() ? "no answer yet" : error);
  }
  std::vector<gpu::Claim> result = *claims;
  if (source_.waiting() && !error.empty()) {
    std::erase_if(result, [&uuids](const gpu::Claim& claim) {
      return !std::ranges::binary_search(uuids, claim.uuid);
    });
  }
  return result;
}

}  // namespace ceems::exporter::k8s
