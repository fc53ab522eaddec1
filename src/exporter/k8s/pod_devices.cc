#include "exporter/k8s/pod_devices.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/strings.h"

namespace ceems::exporter::k8s {
namespace {

// Claims do not become outdated: the devices of a pod do not change.
constexpr auto kMaxAge = std::chrono::hours(24 * 365);
constexpr std::size_t kMaxUid = 96;

bool is_uid(std::string_view text) {
  return !text.empty() && text.size() <= kMaxUid &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_' || c == '.';
         });
}

std::string full_name(std::string_view name_space, std::string_view name) {
  std::string full(name_space);
  full += '\0';
  full += name;
  return full;
}

}  // namespace

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
    : options_(std::move(options)),
      clock_(clock),
      source_({.collector = "k8s",
               .source = "devices of pods",
               .period = options_.period,
               .max_age = kMaxAge,
               .patience = options_.patience,
               .first_wait = options_.first_wait},
              clock_,
              [this](const std::stop_token& stop) { return read(stop); }) {}

// Runs in the thread. Fetches if there was a request since the last time.
Result<PodClaims::Fetched> PodClaims::read(const std::stop_token& stop) {
  const std::uint64_t request = requested_;
  if (done_.request == request) {
    return done_;
  }
  // Requests for the same pods are repeated only after a pause, and for other pods at once.
  if (error_ && failed_request_ == request && clock_.steady_now() < retry_at_) {
    return fail(*error_);
  }
  auto fetched = options_.fetch(stop);
  if (!fetched) {
    error_ = fetched.error();
    failed_request_ = request;
    retry_at_ = clock_.steady_now() + options_.pause_after_error;
    return fail(std::move(fetched).error());
  }
  error_.reset();
  done_ = {.request = request,
           .claims = std::make_shared<const std::vector<gpu::Claim>>(*std::move(fetched))};
  return done_;
}

void PodClaims::request_if_due(std::vector<std::string> uuids) {
  const bool changed = uuids != requested_pods_;
  const bool old = claims_ != nullptr && clock_.steady_now() - refreshed_ >= options_.refresh;
  if (changed || (old && !waiting_)) {
    requested_pods_ = std::move(uuids);
    waiting_ = true;
    ++requested_;
  }
}

Result<std::vector<gpu::Claim>> PodClaims::claims(const UnitSnapshot& snapshot) {
  std::vector<std::string> uuids;
  for (const Unit& unit : snapshot.units) {
    if (!unit.ended) {
      uuids.push_back(unit.uuid);
    }
  }
  std::sort(uuids.begin(), uuids.end());
  request_if_due(uuids);
  if (waiting_) {
    if (const auto value = source_.value()) {
      claims_ = value->value.claims;
      if (value->value.request == requested_) {
        waiting_ = false;
        refreshed_ = clock_.steady_now();
      }
    }
  }
  if (claims_ == nullptr) {
    const std::string error = source_.last_error();
    return fail(ErrorCode::kNoData, "devices of pods: {}", error.empty() ? "no answer yet" : error);
  }
  std::vector<gpu::Claim> result = *claims_;
  if (waiting_ && !source_.last_error().empty()) {
    std::erase_if(result, [&uuids](const gpu::Claim& claim) {
      return !std::binary_search(uuids.begin(), uuids.end(), claim.uuid);
    });
  }
  return result;
}

}  // namespace ceems::exporter::k8s
