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

std::vector<std::filesystem::path> definition_directories(const std::filesystem::path& configured) {
  std::vector<std::filesystem::path> all{configured};
  for (const char* usual : {"/etc/libvirt/qemu", "/run/libvirt/qemu"}) {
    if (configured != usual) {
      all.emplace_back(usual);
    }
  }
  return all;
}

// Reads the file unless it is unchanged.
void Domains::update(const std::filesystem::path& path, File& file) {
  auto fd = open_privileged(path.c_str());
  struct stat info{};
  if (!fd || ::fstat(fd->get(), &info) != 0) {
    file = File{.domain = nullptr,
                .fault = fd ? path.string() + ": stat failed" : std::move(fd).error().message};
    return;
  }
  const std::int64_t modified =
      std::int64_t{info.st_mtim.tv_sec} * kNanoseconds + info.st_mtim.tv_nsec;
  // Also not after an error in this file, which has not changed since.
  if (file.inode == info.st_ino && file.size == info.st_size && file.modified_ns == modified) {
    return;
  }
  file = File{.inode = info.st_ino,
              .size = info.st_size,
              .modified_ns = modified,
              .domain = nullptr,
              .fault = {}};
  if (!S_ISREG(info.st_mode)) {
    file.fault = path.string() + ": not a regular file";
    return;
  }
  std::string text;
  const auto read = host::reread(*fd, text, kMaxDomainXml + 1);
  auto domain = read ? parse_domain_xml(text) : Result<Domain>(fail(read.error()));
  if (domain) {
    file.domain = std::make_shared<const Domain>(*std::move(domain));
  } else {
    file.fault = std::move(domain).error().with_context(path.string()).message;
  }
}

// Uses the first good file. Without any, the fault is that of the first directory.
void Domains::update(const std::string& name, Known& known) {
  known.files.resize(directories_.size());
  std::string fault;
  for (std::size_t i = 0; i < directories_.size(); ++i) {
    File& file = known.files[i];
    update(directories_[i] / (name + ".xml"), file);
    if (file.domain != nullptr) {
      known.domain = file.domain;
      known.fault.clear();
      return;
    }
    if (fault.empty() || (known.files.front().inode == 0 && file.inode != 0)) {
      fault = file.fault;  // a file that is faulty says more than one that is missing
    }
  }
  known.fault = std::move(fault);
  if (known.domain == nullptr) {
    if (auto uuid = uuids_.find(name)) {
      known.domain = std::make_shared<const Domain>(Domain{.uuid = *std::move(uuid)});
    }
  }
}

std::shared_ptr<const Domain> Domains::find(const std::string& name) {
  const MutexLock lock(mutex_);
  Known& known = known_[name];
  const std::string before = known.fault;
  update(name, known);
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
  std::erase_if(known_, [&](const auto& item) {
    const bool forget = !names.contains(item.first);
    if (forget && item.second.domain != nullptr) {
      uuids_.store(item.first, item.second.domain->uuid);
    }
    return forget;
  });
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
