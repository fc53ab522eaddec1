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

/// The definitions of domains in a directory, as NAME.xml. Only root may read the directory, so
/// CAP_DAC_READ_SEARCH is raised if needed. A file is read again when it has changed. Safe for
/// concurrent use.
class Domains {
 public:
  explicit Domains(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// The domain in its file, or the last good one (a VM may run on after it was undefined). Null if
  /// there was never one that could be parsed; the log has one line for that. `name` is a file name
  /// without '/'.
  std::shared_ptr<const Domain> find(const std::string& name);
  /// Forgets domains that are not in the snapshot.
  void keep_only(const UnitSnapshot& snapshot);

 private:
  struct Known {
    std::shared_ptr<const Domain> domain;  // null if there was never a good one
    std::uint64_t inode = 0;               // this and the next two identify the file that was read
    std::int64_t size = 0;
    std::int64_t modified_ns = 0;
    std::string fault;
  };

  void update_from_file(const std::string& name, Known& known) const;

  const std::filesystem::path directory_;
  Mutex mutex_;
  std::map<std::string, Known> known_ CEEMS_GUARDED_BY(mutex_);
};

/// The devices of VMs, by the addresses in their definitions.
class DomainClaims final : public gpu::ClaimSource {
 public:
  /// `new_mdevs` is called when a VM has mediated devices that no VM had at the last call.
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
