#include "redfish_proxy/address_rules.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "net/client/transfer.h"

namespace ceems::redfish_proxy {
namespace {

constexpr std::size_t kMaxUrlBytes = 2048;

std::string bracketed(const std::string& host) {
  return host.contains(':') ? "[" + host + "]" : host;
}

/// libcurl also understands URLs with one or three slashes, and with blanks around them.
bool has_known_form(std::string_view text) {
  const std::string_view rest = text.substr(std::min(text.find("://"), text.size()));
  const std::string scheme = to_lower(text.substr(0, text.size() - rest.size()));
  return (scheme == "http" || scheme == "https") && rest.size() > 3 && rest[3] != '/' &&
         text.find_first_of(" \t\r\n\\") == std::string_view::npos && text.size() <= kMaxUrlBytes;
}

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

std::string BmcUrl::origin() const {
  return fmt::format("{}://{}:{}", tls ? "https" : "http", bracketed(host), port);
}

std::string BmcUrl::host_field() const {
  return port == (tls ? "443" : "80") ? bracketed(host) : bracketed(host) + ":" + port;
}

Result<BmcUrl> parse_bmc_url(const std::string& text) {
  auto url = has_known_form(text) ? net::parse_url(text) : fail(ErrorCode::kInvalidArgument, "");
  if (!url) {
    return fail(ErrorCode::kInvalidArgument,
                "invalid url string: expected http://HOST[:PORT] or https://HOST[:PORT]");
  }
  BmcUrl bmc{.tls = url->scheme == "https",
             .host = std::move(url->host),
             .port = std::move(url->port),
             .base_path = std::move(url->path),
             .query = {}};
  if (bmc.host.starts_with('[')) {
    bmc.host = bmc.host.substr(1, bmc.host.size() - 2);
  }
  while (bmc.base_path.ends_with('/')) {
    bmc.base_path.pop_back();
  }
  if (const auto question = url->full.find('?'); question != std::string::npos) {
    bmc.query = url->full.substr(question + 1);
  }
  return bmc;
}

Result<BmcUrl> parse_bmc_header(const std::string& text) {
  auto bmc = parse_bmc_url(text);
  if (bmc && (!bmc->base_path.empty() || text.find_first_of("@?#") != std::string::npos)) {
    return fail(ErrorCode::kInvalidArgument, "expected a URL without user, path and query");
  }
  return bmc;
}

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
    if (const auto& range = entry.range()) {
      ranges.push_back(*range);
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
