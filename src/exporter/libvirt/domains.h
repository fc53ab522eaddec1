#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/libvirt/domain_xml.h"

namespace ceems::exporter::libvirt {

/// The definitions of domains in a directory, NAME.xml each. The directory is root's alone, so it
/// is read with CAP_DAC_READ_SEARCH raised where needed. A file is read again when it has changed.
/// Safe for concurrent use.
class Domains {
 public:
  explicit Domains(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// The domain as its file says, or said when it could be read last (a VM may run on after it was
  /// undefined); null while there was none, or none that can be understood, which is in the log
  /// once. `name` is a file name without '/'.
  std::shared_ptr<const Domain> find(const std::string& name);
  /// Forgets domains that are none of the units.
  void keep_only(const UnitSnapshot& snapshot);

 private:
  struct Known {
    std::shared_ptr<const Domain> domain;  // null: never a good one
    std::uint64_t inode = 0;               // and the next two: of the file that was read
    std::int64_t size = 0;
    std::int64_t modified_ns = 0;
    std::string fault;
  };

  void take_file(const std::string& name, Known& known) const;

  const std::filesystem::path directory_;
  Mutex mutex_;
  std::map<std::string, Known> known_ CEEMS_GUARDED_BY(mutex_);
};

/// The devices that VMs were given, by the addresses in their definitions.
class DomainClaims final : public gpu::ClaimSource {
 public:
  /// `new_mdevs` is called when a VM has mediated devices that none had at the last call.
  DomainClaims(std::shared_ptr<Domains> domains, std::function<void()> new_mdevs)
      : domains_(std::move(domains)), new_mdevs_(std::move(new_mdevs)) {}

  Result<std::vector<gpu::Claim>> claims(const UnitSnapshot& snapshot) override;
  [[nodiscard]] std::vector<os::Capability> capabilities() const override;

 private:
  std::shared_ptr<Domains> domains_;
  std::function<void()> new_mdevs_;
  std::set<std::string> mdevs_;  // of the last call
};

}  // namespace ceems::exporter::libvirt
