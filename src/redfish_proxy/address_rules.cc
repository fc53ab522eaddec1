#include "redfish_proxy/address_rules.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "base/strings.h"

namespace ceems::redfish_proxy {
namespace {

std::vector<net::Cidr> ranges_of(std::initializer_list<std::string_view> texts) {
  std::vector<net::Cidr> ranges;
  for (const std::string_view text : texts) {
    ranges.push_back(*net::Cidr::parse(text));
  }
  return ranges;
}

bool contains(const std::vector<net::Cidr>& ranges, std::string_view address) {
  return std::ranges::any_of(ranges,
                             [&](const net::Cidr& range) { return range.contains(address); });
}

/// Whether `text` has the form of `pattern`, in which '*' stands for any characters.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t star = std::string_view::npos;
  std::size_t from = 0;  // where the text of the last star ends for now
  std::size_t p = 0;
  std::size_t t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
         c == '*';
}

/// Takes ":PORT" off the end of an entry, unless the colon is inside an IPv6 address.
Result<std::string> take_port(std::string_view& text) {
  const std::size_t colon = text.rfind(':');
  const bool in_address = text.find(':') != colon && !text.starts_with('[');
  if (colon == std::string_view::npos || in_address ||
      (text.starts_with('[') && colon < text.find(']'))) {
    return std::string();
  }
  const auto port = parse_int<unsigned>(text.substr(colon + 1));
  if (!port || *port == 0 || *port > 65535) {
    return fail(ErrorCode::kInvalidArgument, "expected a port from 1 to 65535 after the colon");
  }
  text = text.substr(0, colon);
  return std::to_string(*port);
}

}  // namespace

Result<AllowedTarget> AllowedTarget::parse(std::string_view text) {
  AllowedTarget entry;
  if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    entry.tls_ = text.starts_with("https://");
    if (!*entry.tls_ && !text.starts_with("http://")) {
      return fail(ErrorCode::kInvalidArgument, "expected http:// or https://");
    }
    text.remove_prefix(scheme + 3);
  }
  CEEMS_TRY(port, take_port(text));
  entry.port_ = std::move(port);
  std::string host = to_lower(text);
  std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
  if (host.contains('/') || net::canonical_address(host)) {
    CEEMS_TRY(range, net::Cidr::parse(host));
    entry.range_ = range;
    return entry;
  }
  if (host.empty() || !std::ranges::all_of(host, is_name_character)) {
    return fail(ErrorCode::kInvalidArgument,
                "expected [SCHEME://]HOST[:PORT], where HOST is a name, a pattern such as "
                "*.bmc.example.org, or a range of addresses such as 10.2.0.0/16");
  }
  entry.name_ = std::move(host);
  return entry;
}

bool AllowedTarget::fits(const BmcUrl& bmc) const {
  return (!tls_ || *tls_ == bmc.tls) && (port_.empty() || port_ == bmc.port);
}

bool AllowedTarget::names(std::string_view host) const {
  return !name_.empty() && matches_pattern(name_, host);
}

AddressRules AddressRules::all(bool loopback) {
  Ranges ranges;
  ranges.refused = ranges_of({"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4",
                              "255.255.255.255", "100.100.100.200", "192.0.0.192", "::", "::1",
                              "fe80::/10", "ff00::/8", "fd00:ec2::254", "fd20:ce::254"});
  if (loopback) {
    ranges.excepted = ranges_of({"127.0.0.0/8", "::1"});
  }
  return AddressRules(std::move(ranges));
}

AddressRules AddressRules::only(std::vector<net::Cidr> ranges) {
  return AddressRules(Ranges{.allowed = std::move(ranges), .refused = {}, .excepted = {}});
}

bool AddressRules::permit(std::string_view address) const {
  const auto canonical = net::canonical_address(address);
  if (!canonical) {
    return false;
  }
  if (!ranges_->allowed.empty()) {
    return contains(ranges_->allowed, *canonical);
  }
  return !contains(ranges_->refused, *canonical) || contains(ranges_->excepted, *canonical);
}

std::optional<AddressRules> rules_for(const std::vector<AllowedTarget>& allowed,
                                      const BmcUrl& bmc) {
  std::vector<net::Cidr> ranges;
  for (const AllowedTarget& entry : allowed) {
    if (!entry.fits(bmc)) {
      continue;
    }
    if (entry.range()) {
      ranges.push_back(*entry.range());
    } else if (entry.names(bmc.host)) {
      return AddressRules::all(entry.is_localhost());
    }
  }
  if (ranges.empty()) {
    return std::nullopt;
  }
  return AddressRules::only(std::move(ranges));
}

}  // namespace ceems::redfish_proxy
