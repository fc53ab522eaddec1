#include "exporter/libvirt/domains.h"

#include <linux/capability.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>
#include <utility>

#include <pugixml.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/source/privileged_open.h"
#include "host/read_file.h"

namespace ceems::exporter::libvirt {
namespace {

constexpr std::ptrdiff_t kMaxElements = 100'000;  // counts '<', of which an element has about two
constexpr std::size_t kMaxHostdevs = 4096;
constexpr std::size_t kMaxUuid = 96;

bool is_uuid_text(std::string_view text) {
  return !text.empty() && text.size() <= kMaxUuid && has_only_words(text, "-");
}

// Parses a hexadecimal number with or without 0x, at most `max`.
std::optional<std::uint32_t> part_of_address(const pugi::xml_attribute& attribute,
                                             std::uint32_t max) {
  std::string_view text = trim(attribute.value());
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
  }
  constexpr int kHexadecimal = 16;
  std::uint32_t value = 0;
  const char* const begin = std::to_address(text.begin());
  const char* const end = std::to_address(text.end());
  const auto [stop, error] = std::from_chars(begin, end, value, kHexadecimal);
  if (text.empty() || error != std::errc{} || stop != end || value > max) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> pci_address(const pugi::xml_node& address) {
  const auto domain = address.attribute("domain").empty()
                          ? std::optional<std::uint32_t>(0)
                          : part_of_address(address.attribute("domain"), 0xFFFFFFFF);
  const auto bus = part_of_address(address.attribute("bus"), 0xFF);
  const auto slot = part_of_address(address.attribute("slot"), 0x1F);
  const auto function = part_of_address(address.attribute("function"), 0x7);
  if (!domain || !bus || !slot || !function) {
    return std::nullopt;
  }
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", *domain, *bus, *slot, *function);
}

void add_hostdev(const pugi::xml_node& hostdev, Domain& domain) {
  const std::string_view type = hostdev.attribute("type").value();
  const pugi::xml_node address = hostdev.child("source").child("address");
  if (type == "pci") {
    if (auto found = pci_address(address)) {
      domain.pci_addresses.push_back(*std::move(found));
    }
  } else if (type == "mdev") {
    const std::string_view uuid = trim(address.attribute("uuid").value());
    if (is_uuid_text(uuid)) {
      domain.mdevs.push_back(to_lower(uuid));
    }
  }
}

constexpr std::int64_t kNanoseconds = 1'000'000'000;

}  // namespace

Result<Domain> parse_domain_xml(std::string_view text) {
  if (text.size() > kMaxDomainXml) {
    return fail(ErrorCode::kParse, "expected at most {} bytes", kMaxDomainXml);
  }
  if (std::count(text.begin(), text.end(), '<') > kMaxElements) {
    return fail(ErrorCode::kParse, "too many elements");
  }
  // pugixml builds the tree without recursion and ignores document types, so neither depth nor
  // entities can do harm. The code below visits three levels.
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed) {
    return fail(ErrorCode::kParse, "expected XML: {} at byte {}", parsed.description(),
                parsed.offset);
  }
  pugi::xml_node root = document.document_element();
  if (std::string_view(root.name()) == "domstatus" && root.child("domain")) {
    root = root.child("domain");
  }
  Domain domain;
  domain.uuid = trim(root.child("uuid").text().get());
  if (!is_uuid_text(domain.uuid)) {
    return fail(ErrorCode::kParse, "expected a UUID in element uuid, got '{}'",
                printable(domain.uuid, 64));
  }
  std::size_t count = 0;
  for (const pugi::xml_node& devices : root.children("devices")) {
    for (const pugi::xml_node& hostdev : devices.children("hostdev")) {
      if (++count > kMaxHostdevs) {
        return fail(ErrorCode::kParse, "more than {} hostdev elements", kMaxHostdevs);
      }
      add_hostdev(hostdev, domain);
    }
  }
  return domain;
}

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
