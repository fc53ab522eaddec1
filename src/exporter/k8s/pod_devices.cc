#include "exporter/k8s/pod_devices.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/strings.h"

namespace ceems::exporter::k8s {
namespace {

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

std::vector<gpu::Claim> join_pods(const std::vector<PodDevices>& devices,
                                  const std::vector<Pod>& pods,
                                  const SliceDevices& slices) {
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
    std::vector<std::string> ids = held.device_ids;
    for (const std::string& device : held.claimed) {
      if (const auto known = slices.find(device); known != slices.end()) {
        ids.push_back(known->second);
      }
    }
    if (pod == nullptr || ids.empty()) {
      continue;
    }
    gpu::Claim& claim = claims[pod->uid];
    claim.uuid = pod->uid;
    claim.evidence = gpu::Evidence::kManager;
    for (const std::string& id : ids) {
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
