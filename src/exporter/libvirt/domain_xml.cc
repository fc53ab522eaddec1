#include "exporter/libvirt/domain_xml.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>

#include <pugixml.hpp>

#include "base/strings.h"

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

}  // namespace ceems::exporter::libvirt
