#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/cidr.h"

namespace ceems::redfish_proxy {

/// The base URL of a BMC.
struct BmcUrl {
  bool tls = false;
  std::string host;       ///< in lower case, IPv6 without brackets
  std::string port;       ///< never empty
  std::string base_path;  ///< without '/' at its end
  std::string query;      ///< without '?'

  /// "https://bmc1:443", "http://[2001:db8::1]:80". Equal for all spellings of the same server.
  [[nodiscard]] std::string origin() const;
  /// The value of Host: the port is left out if it is the default one.
  [[nodiscard]] std::string host_field() const;
};

/// Parses an absolute http or https URL. A user and password in it are dropped. Returns
/// kInvalidArgument for anything else; the message does not repeat the text, which may hold a
/// password.
Result<BmcUrl> parse_bmc_url(const std::string& text);

/// Parses the value of X-Redfish-Url: the URL of a server without user, path or query.
Result<BmcUrl> parse_bmc_header(const std::string& text);

/// `allowed_targets[]`: servers that a client may name. "https://*.bmc.example.org",
/// "10.2.0.0/16:443", "http://10.0.0.7", "[2001:db8::]/64", "bmc1": an optional scheme, a name with
/// '*' for any characters or a range of addresses, and an optional port.
class AllowedTarget {
 public:
  /// kInvalidArgument names what was expected.
  static Result<AllowedTarget> parse(std::string_view text);

  /// Whether the scheme and the port of this entry fit.
  [[nodiscard]] bool fits(const BmcUrl& bmc) const;
  /// Whether the host is one of the names of this entry. Never for a range.
  [[nodiscard]] bool names(std::string_view host) const;
  [[nodiscard]] bool is_localhost() const { return name_ == "localhost"; }
  [[nodiscard]] const std::optional<net::Cidr>& range() const { return range_; }

 private:
  std::optional<bool> tls_;
  std::string port_;  // empty: any
  std::string name_;  // with '*'; empty for a range
  std::optional<net::Cidr> range_;
};

/// To which addresses a request may be sent if a client has named the BMC. A name may resolve to
/// anything, so this is checked for the addresses that connections are made to. Copies are cheap
/// and may outlive main(). Safe for concurrent use.
class AddressRules {
 public:
  /// All addresses except this machine's, link-local and multicast addresses and the metadata
  /// services of clouds. `loopback` allows 127.0.0.0/8 and ::1 nevertheless.
  static AddressRules all(bool loopback);
  /// Only these ranges, special addresses included.
  static AddressRules only(std::vector<net::Cidr> ranges);

  /// `address` is numeric; with any other text the result is false.
  [[nodiscard]] bool permit(std::string_view address) const;

 private:
  struct Ranges {
    std::vector<net::Cidr> allowed;  ///< empty: all but `refused`
    std::vector<net::Cidr> refused;
    std::vector<net::Cidr> excepted;  ///< from `refused`
  };
  explicit AddressRules(Ranges ranges)
      : ranges_(std::make_shared<const Ranges>(std::move(ranges))) {}
  std::shared_ptr<const Ranges> ranges_;
};

/// The rules for the addresses of a BMC that a client has named, or nothing if the list does not
/// allow that BMC.
std::optional<AddressRules> rules_for(const std::vector<AllowedTarget>& allowed, const BmcUrl& bmc);

}  // namespace ceems::redfish_proxy
