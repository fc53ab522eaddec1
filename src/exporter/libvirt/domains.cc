#include "exporter/libvirt/domains.h"

#include <linux/capability.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "exporter/source/privileged_open.h"
#include "host/read_file.h"

namespace ceems::exporter::libvirt {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;

}  // namespace

// Reads the file unless it is unchanged.
void Domains::update_from_file(const std::string& name, Known& known) const {
  const std::string path = directory_ / (name + ".xml");
  auto fd = open_privileged(path.c_str());
  struct stat info{};
  if (!fd || ::fstat(fd->get(), &info) != 0) {
    known.inode = 0;
    known.fault = fd ? path + ": stat failed" : std::move(fd).error().message;
    return;
  }
  const std::int64_t modified =
      std::int64_t{info.st_mtim.tv_sec} * kNanoseconds + info.st_mtim.tv_nsec;
  // Also not after an error in this file, which has not changed since.
  if (known.inode == info.st_ino && known.size == info.st_size && known.modified_ns == modified) {
    return;
  }
  known.inode = info.st_ino;
  known.size = info.st_size;
  known.modified_ns = modified;
  if (!S_ISREG(info.st_mode)) {
    known.fault = path + ": not a regular file";
    return;
  }
  std::string text;
  const auto read = host::reread(*fd, text, kMaxDomainXml + 1);
  auto domain = read ? parse_domain_xml(text) : Result<Domain>(fail(read.error()));
  if (domain) {
    known.domain = std::make_shared<const Domain>(*std::move(domain));
    known.fault.clear();
  } else {
    known.fault = std::move(domain).error().with_context(path).message;
  }
}

std::shared_ptr<const Domain> Domains::find(const std::string& name) {
  const MutexLock lock(mutex_);
  Known& known = known_[name];
  const std::string before = known.fault;
  update_from_file(name, known);
  if (known.fault != before) {
    if (!known.fault.empty()) {
      log::error(known.domain == nullptr
                     ? "definition of a VM cannot be read; using its name as UUID, without GPUs"
                     : "definition of a VM cannot be read; using the last good one",
                 {{"collector", "libvirt"}, {"vm", name}, {"err", known.fault}});
    } else {
      log::info("definition of a VM can be read again", {{"collector", "libvirt"}, {"vm", name}});
    }
  }
  return known.domain;
}

void Domains::keep_only(const UnitSnapshot& snapshot) {
  const MutexLock lock(mutex_);
  if (known_.size() <= snapshot.units.size()) {
    return;
  }
  std::unordered_set<std::string_view> names;
  for (const Unit& unit : snapshot.units) {
    names.insert(unit.id);
  }
  std::erase_if(known_, [&names](const auto& item) { return !names.contains(item.first); });
}

Result<std::vector<gpu::Claim>> DomainClaims::claims(const UnitSnapshot& snapshot) {
  std::vector<gpu::Claim> all;
  std::set<std::string> mdevs;
  for (const Unit& unit : snapshot.units) {
    if (unit.ended) {
      continue;
    }
    const auto domain = domains_->find(unit.id);
    if (domain == nullptr || (domain->pci_addresses.empty() && domain->mdevs.empty())) {
      continue;
    }
    all.push_back({.uuid = unit.uuid,
                   .cgrouphostname = unit.cgrouphostname,
                   .evidence = gpu::Evidence::kManager,
                   .addresses = domain->pci_addresses,
                   .mdevs = domain->mdevs});
    mdevs.insert(domain->mdevs.begin(), domain->mdevs.end());
  }
  const bool more = !std::includes(mdevs_.begin(), mdevs_.end(), mdevs.begin(), mdevs.end());
  mdevs_ = std::move(mdevs);
  if (more && new_mdevs_) {
    new_mdevs_();
  }
  return all;
}

std::vector<os::Capability> DomainClaims::capabilities() const {
  return {CAP_DAC_READ_SEARCH};
}

}  // namespace ceems::exporter::libvirt
