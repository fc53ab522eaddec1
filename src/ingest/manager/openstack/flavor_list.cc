#include "ingest/manager/openstack/flavor_list.h"

#include <chrono>
#include <utility>

#include "base/json.h"
#include "base/log.h"

namespace ceems::ingest::openstack {
namespace {

constexpr std::chrono::hours kRefresh{1};

std::string text_of(const std::map<std::string, std::string>& specs) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object();
  for (const auto& [name, value] : specs) {
    json.member(name, value);
  }
  json.end_object();
  return text;
}

void add(const std::string& region,
         std::vector<Flavor> listed,
         std::vector<model::Flavor>& flavors) {
  for (Flavor& flavor : listed) {
    if (flavor.detailed && flavor.has_extra_specs) {
      flavors.push_back({.region = region,
                         .id = std::move(flavor.id),
                         .name = std::move(flavor.name),
                         .vcpus = flavor.vcpus,
                         .ram_mib = flavor.ram_mib,
                         .disk_gb = flavor.disk_gb,
                         .ephemeral_gb = flavor.ephemeral_gb,
                         .swap_mb = flavor.swap_mb,
                         .extra_specs = text_of(flavor.extra_specs),
                         .offered = flavor.offered});
    }
  }
}

}  // namespace

void FlavorList::refresh(const std::string& cluster_id, const std::stop_token& stop) {
  const auto now = clock_.steady_now();
  if (stop.stop_requested() || (read_at_ && now - *read_at_ < kRefresh)) {
    return;
  }
  read_at_ = now;
  std::vector<model::Flavor> flavors;
  for (const std::string& region : client_.regions()) {
    auto listed = client_.flavors(region);
    if (!listed) {
      if (!failed_ && !stop.stop_requested()) {
        log::warn("cannot read the list of flavors; reports name no smaller ones",
                  {{"cluster_id", cluster_id},
                   {"known", flavors_ ? flavors_->size() : 0},
                   {"err", listed.error().message}});
      }
      failed_ = true;
      return;
    }
    add(region, std::move(*listed), flavors);
  }
  failed_ = false;
  flavors_ = std::move(flavors);
}

}  // namespace ceems::ingest::openstack
