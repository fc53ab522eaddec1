#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/recent_map.h"
#include "base/result.h"
#include "exporter/gpu/claim/claim.h"

namespace ceems::exporter::libvirt {

/// The parts of a domain's definition that are used.
struct Domain {
  std::string uuid;
  /// Devices of the host that are passed to the domain, in the order of the file, once per entry.
  std::vector<std::string> pci_addresses = {};  ///< "0000:3b:00.0"
  std::vector<std::string> mdevs = {};          ///< UUIDs of mediated devices, lower case
};

/// Maximum size of a definition. Definitions of real VMs have about 10 KiB.
inline constexpr std::size_t kMaxDomainXml = std::size_t{4} << 20U;

/// Parses a domain's XML (https://libvirt.org/formatdomain.html): `uuid`, and `devices/hostdev` of
/// types pci and mdev. In the file that libvirt keeps of a running domain, they are in the element
/// `domain` of `domstatus`. Otherwise the name of the root element does not matter. Entities that
/// the document declares are not expanded. A hostdev that cannot be parsed is left out. kParse: not
/// XML, no UUID of harmless characters, or more elements than any VM has.
Result<Domain> parse_domain_xml(std::string_view text);

/// Where definitions are looked for, in this order: `configured`, libvirt's directory of
/// definitions, and that of running domains, which also has those that are defined nowhere.
std::vector<std::filesystem::path> definition_directories(const std::filesystem::path& configured);

/// The definitions of domains in directories, as NAME.xml. Only root may read the directories, so
/// CAP_DAC_READ_SEARCH is raised if needed. A file is read again when it has changed. Safe for
/// concurrent use.
class Domains {
 public:
  explicit Domains(std::vector<std::filesystem::path> directories)
      : directories_(std::move(directories)) {}

  /// The domain in the first directory that has a good file of it, or else the last good one (a VM
  /// may run on after it was undefined). Null if there was never one that could be parsed; the log
  /// has one line for that. Of a domain that was forgotten, the UUID is still known: it is returned
  /// without devices while there is no file. `name` is a file name without '/'.
  std::shared_ptr<const Domain> find(const std::string& name);
  /// Forgets the devices of domains that are not in the snapshot. Their UUIDs are kept.
  void keep_only(const UnitSnapshot& snapshot);

 private:
  /// The parsed contents of one file, and when it was read.
  struct File {
    std::uint64_t inode = 0;  // this and the next two identify the content that was read
    std::int64_t size = 0;
    std::int64_t modified_ns = 0;
    std::shared_ptr<const Domain> domain;  // null if it is missing or faulty
    std::string fault;
  };
  struct Known {
    std::vector<File> files;               // in the order of directories_
    std::shared_ptr<const Domain> domain;  // the last good one, or null
    std::string fault;
  };

  static void update(const std::filesystem::path& path, File& file);
  void update(const std::string& name, Known& known);

  const std::vector<std::filesystem::path> directories_;
  Mutex mutex_;
  std::map<std::string, Known> known_ CEEMS_GUARDED_BY(mutex_);
  RecentMap<std::string> uuids_{kMaxUuids, kMaxName};  // of domains that were forgotten

  static constexpr std::size_t kMaxUuids = 16384;
  static constexpr std::size_t kMaxName = 255;
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
