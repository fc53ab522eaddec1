#include "mail/address.h"

#include <algorithm>

#include "base/strings.h"

namespace ceems::mail {
namespace {

constexpr std::size_t kMaxLocal = 64;  // RFC 5321 §4.5.3.1
constexpr std::size_t kMaxDomain = 255;
constexpr std::size_t kMaxAddresses = 5;

bool is_local(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLocal && text.front() != '-' && text.front() != '.' &&
         text.back() != '.' && text.find("..") == std::string_view::npos &&
         has_only_words(text, ".!#$%&'*+-/=?^_{|}~");
}

bool is_domain(std::string_view text) {
  if (text.empty() || text.size() > kMaxDomain) {
    return false;
  }
  for (const std::string_view label : split(text, '.')) {
    if (label.empty() || label.front() == '-' || label.back() == '-' ||
        !has_only_words(label, "-")) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool is_address(std::string_view text) {
  const std::size_t at = text.rfind('@');
  return at != std::string_view::npos && is_local(text.substr(0, at)) &&
         is_domain(text.substr(at + 1));
}

Result<std::vector<std::string>> addresses_of(std::string_view recipient, std::string_view domain) {
  std::vector<std::string> addresses;
  for (const std::string_view part : split(recipient, ',')) {
    std::string address(trim(part));
    if (address.find('@') == std::string::npos && !domain.empty()) {
      address.append("@").append(domain);
    }
    if (!is_address(address)) {
      return fail(ErrorCode::kInvalidArgument, "expected a mail address, got '{}'",
                  printable(address, 80));
    }
    if (std::ranges::find(addresses, address) == addresses.end()) {
      addresses.push_back(std::move(address));
    }
  }
  if (addresses.size() > kMaxAddresses) {
    return fail(ErrorCode::kInvalidArgument, "more than {} recipients", kMaxAddresses);
  }
  return addresses;
}

}  // namespace ceems::mail
