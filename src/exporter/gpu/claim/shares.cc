#include "exporter/gpu/claim/shares.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "base/strings.h"

namespace ceems::exporter::gpu {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return !text.empty() && std::find(list.begin(), list.end(), text) != list.end();
}

Holder* find(Holders& holders, std::size_t claim) {
  const auto found = std::find_if(holders.units.begin(), holders.units.end(),
                                  [&](const Holder& holder) { return holder.claim == claim; });
  return found == holders.units.end() ? nullptr : &*found;
}

/// Counts that the claim names this GPU or instance.
void count_name(Holders& holders, std::size_t claim) {
  Holder* holder = find(holders, claim);
  if (holder == nullptr) {
    holder = &holders.units.emplace_back(Holder{.claim = claim});
  }
  ++holder->shares;
  ++holders.shares;
}

class Attacher {
 public:
  Attacher(const std::vector<Device>& devices,
           const std::vector<Claim>& claims,
           const AvailableShares& available)
      : devices_(devices), claims_(claims), available_(available), holders_(devices.size()) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      holders_[i].instances.resize(devices[i].instances.size());
    }
  }

  std::vector<DeviceHolders> run() {
    for (const bool hint : {false, true}) {
      for (std::size_t i = 0; i < claims_.size(); ++i) {
        if (is_hint(i) == hint) {
          attach_ordinals(i);
          attach_names(i);
        }
      }
    }
    if (available_.sharing) {
      distribute();
    }
    return std::move(holders_);
  }

 private:
  [[nodiscard]] bool is_hint(std::size_t claim) const {
    return claims_[claim].evidence == Evidence::kEnvironment;
  }

  [[nodiscard]] std::uint64_t available(std::size_t device) const {
    return device < available_.devices.size() ? available_.devices[device].device : 0;
  }
  [[nodiscard]] std::uint64_t available(std::size_t device, std::size_t instance) const {
    if (device >= available_.devices.size() ||
        instance >= available_.devices[device].instances.size()) {
      return 0;
    }
    return available_.devices[device].instances[instance];
  }

  /// Whether a unit holds it with better evidence than the claim's.
  [[nodiscard]] bool taken(const Holders& holders, std::size_t claim) const {
    return is_hint(claim) && std::ranges::any_of(holders.units, [&](const Holder& holder) {
             return !is_hint(holder.claim);
           });
  }

  void add_by_ordinal(Holders& holders, std::size_t claim, bool shareable) const {
    if (claims_[claim].evenly) {
      if (!taken(holders, claim)) {
        count_name(holders, claim);
      }
      return;
    }
    if (shareable || !taken(holders, claim)) {
      holders.units.push_back({.claim = claim});
    }
  }

  void attach_ordinals(std::size_t claim) {
    const std::vector<std::string>& ordinals = claims_[claim].ordinals;
    if (ordinals.empty()) {
      return;
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (contains(ordinals, devices_[d].index)) {
        add_by_ordinal(holders_[d].device, claim, available(d) > 0);
      }
      for (std::size_t i = 0; i < devices_[d].instances.size(); ++i) {
        if (contains(ordinals, devices_[d].instances[i].index)) {
          add_by_ordinal(holders_[d].instances[i], claim, available(d, i) > 0);
        }
      }
    }
  }

  void attach_names(std::size_t claim) {
    for (const std::string& text : claims_[claim].addresses) {
      attach_address(claim, text);
    }
    for (const std::string& mdev : claims_[claim].mdevs) {
      attach_mdev(claim, mdev);
    }
    for (const std::string& id : claims_[claim].device_ids) {
      attach_device_id(claim, to_lower(id));
    }
  }

  void attach_address(std::size_t claim, const std::string& text) {
    const auto address = parse_pci_address(text);
    const auto found = std::find_if(devices_.begin(), devices_.end(), [&](const Device& device) {
      return address && device.address == address;
    });
    if (found != devices_.end()) {
      count_name(holders_[static_cast<std::size_t>(found - devices_.begin())].device, claim);
    }
  }

  void attach_mdev(std::size_t claim, const std::string& mdev) {
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (contains(devices_[d].mdevs, mdev)) {
        count_name(holders_[d].device, claim);
        return;
      }
      for (std::size_t i = 0; i < devices_[d].instances.size(); ++i) {
        if (contains(devices_[d].instances[i].mdevs, mdev)) {
          count_name(holders_[d].instances[i], claim);
          return;
        }
      }
    }
  }

  /// The id of an AMD GPU's first partition is also that of the GPU, and both count, as in the
  /// reference.
  void attach_device_id(std::size_t claim, const std::string& id) {
    if (id.empty()) {
      return;
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const Device& device = devices_[d];
      const std::string own =
          device.vendor == Vendor::kNvidia ? to_lower(device.uuid) : to_lower(device.path_name);
      if (own == id) {
        count_name(holders_[d].device, claim);
      }
      for (std::size_t i = 0; i < device.instances.size(); ++i) {
        if (to_lower(device.instances[i].uuid) == id) {
          count_name(holders_[d].instances[i], claim);
        }
      }
    }
  }

  static void give(Holders& holders,
                   std::size_t claim,
                   std::uint64_t& remaining,
                   std::uint64_t& wanted) {
    Holder* holder = find(holders, claim);
    if (holder == nullptr) {
      return;
    }
    const std::uint64_t given = std::min(wanted, remaining);
    holder->shares = given;
    holders.shares += given;
    remaining -= given;
    wanted -= given;
  }

  void distribute() {
    AvailableShares remaining = available_;
    remaining.devices.resize(devices_.size());
    std::vector<std::size_t> order(claims_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return std::pair(is_hint(a), claims_[a].ordinals.size()) <
             std::pair(is_hint(b), claims_[b].ordinals.size());
    });
    for (const std::size_t claim : order) {
      std::uint64_t wanted = claims_[claim].shares;
      if (claims_[claim].ordinals.empty()) {
        continue;
      }
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        give(holders_[d].device, claim, remaining.devices[d].device, wanted);
        remaining.devices[d].instances.resize(devices_[d].instances.size());
        for (std::size_t i = 0; i < devices_[d].instances.size(); ++i) {
          give(holders_[d].instances[i], claim, remaining.devices[d].instances[i], wanted);
        }
      }
    }
    for (DeviceHolders& holders : holders_) {
      drop_hints_without_shares(holders.device);
      for (Holders& instance : holders.instances) {
        drop_hints_without_shares(instance);
      }
    }
  }

  /// There are holders with better evidence, so nothing is left for these.
  void drop_hints_without_shares(Holders& holders) const {
    std::vector<Holder> kept;
    std::ranges::copy_if(holders.units, std::back_inserter(kept), [&](const Holder& holder) {
      return holder.shares > 0 || !taken(holders, holder.claim);
    });
    holders.units = std::move(kept);
  }

  const std::vector<Device>& devices_;
  const std::vector<Claim>& claims_;
  const AvailableShares& available_;
  std::vector<DeviceHolders> holders_;
};

}  // namespace

double Holders::flag(const Holder& holder) const {
  return holder.shares > 0 && shares > 0
             ? static_cast<double>(holder.shares) / static_cast<double>(shares)
             : 1;
}

double Holders::part(const Holder& holder) const {
  return shares > 0 ? static_cast<double>(holder.shares) / static_cast<double>(shares)
                    : 1 / static_cast<double>(units.size());
}

std::vector<DeviceHolders> attach(const std::vector<Device>& devices,
                                  const std::vector<Claim>& claims,
                                  const AvailableShares& available) {
  return Attacher(devices, claims, available).run();
}

}  // namespace ceems::exporter::gpu
