#include "exporter/collectors/gpu_map.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/strings.h"
#include "exporter/gpu/claim/shares.h"

namespace ceems::exporter::gpu {
namespace {

using metrics::Desc;
using metrics::Type;

const std::vector<std::string> kLabels = {"manager", "hostname", "cgrouphostname", "uuid",
                                          "index",   "hindex",   "gpuuuid",        "gpuiid"};

/// The labels of a GPU or instance.
struct Row {
  Vendor vendor = Vendor::kNvidia;
  std::string index;
  std::string device_uuid;
  std::string gpu_instance;
  std::uint64_t sm_count = 0;
};

class MapCollector final : public SubCollector {
 public:
  MapCollector(const CollectorContext& context,
               std::shared_ptr<Inventory> inventory,
               const std::string& help,
               std::unique_ptr<ClaimSource> claims,
               MapOptions options)
      : hostname_(context.hostname),
        inventory_(std::move(inventory)),
        claims_(std::move(claims)),
        options_(std::move(options)),
        flag_("ceems_compute_unit_gpu_index_flag",
              inventory_->shared_help(help),
              Type::kGauge,
              kLabels),
        sm_count_("ceems_compute_unit_gpu_sm_count",
                  "Number of SMs/CUs in the GPU instance",
                  Type::kGauge,
                  kLabels) {}

  [[nodiscard]] std::string_view name() const override { return {}; }

  [[nodiscard]] std::vector<os::Capability> capabilities() const override {
    return inventory_->has_no_gpus() ? std::vector<os::Capability>{} : claims_->capabilities();
  }

  [[nodiscard]] std::optional<std::size_t> hints() const override { return hints_; }

  void start() override {
    inventory_->start();
    claims_->start();
  }

  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    inventory_->wait_first(deadline);
    claims_->wait_first(deadline);
  }

  Result<> collect(const UnitSnapshot& snapshot, metrics::Sink& sink) override {
    hints_ = 0;
    if (inventory_->devices()->empty()) {
      return {};
    }
    auto claims = claims_->claims(snapshot);
    if (!claims) {
      inventory_->assignments().publish(snapshot.manager, {});
      return fail(std::move(claims).error());
    }
    // After the claims, because their source may have caused vGPUs to be read again.
    update(inventory_->devices(), *claims);
    const auto holders = attach(devices_, *claims, available_);
    Assignments::List list;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const Device& device = devices_[d];
      add({device.vendor, device.index, device.uuid, "", device.sm_count}, holders[d].device,
          *claims, snapshot.manager, sink, list);
      for (std::size_t i = 0; i < device.instances.size(); ++i) {
        const Instance& instance = device.instances[i];
        add({device.vendor, instance.index, device.uuid, std::to_string(instance.gpu_instance),
             instance.sm_count},
            holders[d].instances[i], *claims, snapshot.manager, sink, list);
      }
    }
    hints_ = static_cast<std::size_t>(
        std::ranges::count(list, Evidence::kEnvironment, &Assignment::evidence));
    inventory_->assignments().publish(snapshot.manager, std::move(list));
    return {};
  }

 private:
  /// Devices by the manager's indexes, and their shares. Rebuilt when the devices change, or when a
  /// virtual node appears that lines of gres.conf may be for.
  void update(const std::shared_ptr<const Inventory::Devices>& devices,
              const std::vector<Claim>& claims) {
    bool changed = devices != source_;
    if (!options_.gres.empty()) {
      for (const Claim& claim : claims) {
        changed |= !claim.cgrouphostname.empty() &&
                   virtual_nodes_.insert(to_lower(claim.cgrouphostname)).second;
      }
    }
    if (!changed) {
      return;
    }
    source_ = devices;
    devices_ = *devices;
    apply_order_map(options_.order, devices_);
    available_ = available_shares(options_.gres, options_.mig_minors, node_names(), devices_,
                                  options_.every_gres_file);
  }

  [[nodiscard]] std::vector<std::string> node_names() const {
    if (hostname_.empty()) {
      return {};
    }
    std::vector<std::string> names(virtual_nodes_.begin(), virtual_nodes_.end());
    names.push_back(to_lower(hostname_));
    names.push_back(names.back().substr(0, names.back().find('.')));
    return names;
  }

  void add(const Row& row,
           const Holders& holders,
           const std::vector<Claim>& claims,
           const std::string& manager,
           metrics::Sink& sink,
           Assignments::List& list) const {
    const std::string hindex = hostname_ + "/gpu-" + row.index;
    for (const Holder& holder : holders.units) {
      const Claim& claim = claims[holder.claim];
      const auto labels =
          std::to_array<std::string_view>({manager, hostname_, claim.cgrouphostname, claim.uuid,
                                           row.index, hindex, row.device_uuid, row.gpu_instance});
      sink.add(flag_, holders.flag(holder), labels);
      if (row.sm_count > 0) {
        sink.add(sm_count_, static_cast<double>(row.sm_count), labels);
      }
      list.push_back({.manager = manager,
                      .cgrouphostname = claim.cgrouphostname,
                      .uuid = claim.uuid,
                      .vendor = row.vendor,
                      .device_uuid = row.device_uuid,
                      .index = row.index,
                      .gpu_instance = row.gpu_instance,
                      .sm_count = row.sm_count,
                      .share = holders.part(holder),
                      .evidence = claim.evidence});
    }
  }

  const std::string hostname_;
  const std::shared_ptr<Inventory> inventory_;
  const std::unique_ptr<ClaimSource> claims_;
  const MapOptions options_;
  const Desc flag_;
  const Desc sm_count_;

  std::shared_ptr<const Inventory::Devices> source_;
  std::set<std::string> virtual_nodes_;
  std::vector<Device> devices_;
  AvailableShares available_;
  std::size_t hints_ = 0;  // of the last page
};

}  // namespace

Result<std::unique_ptr<SubCollector>> make_map_collector(const CollectorContext& context,
                                                         std::shared_ptr<Inventory> inventory,
                                                         const std::string& help,
                                                         std::unique_ptr<ClaimSource> claims,
                                                         MapOptions options) {
  if (inventory == nullptr || claims == nullptr) {
    return fail(ErrorCode::kInternal, "GPU map without inventory or claims");
  }
  return std::make_unique<MapCollector>(context, std::move(inventory), help, std::move(claims),
                                        std::move(options));
}

}  // namespace ceems::exporter::gpu
