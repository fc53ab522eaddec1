// Cookies of sessions and logins: only what this server sealed opens, and in only one spelling.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "access/session.h"
#include "net/cidr.h"

namespace cookies = ceems::access;  // "access" is a function of POSIX

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kNow = 1'767'225'600;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const auto signer =
      cookies::Signer::create(std::string(cookies::Signer::kMinKeyBytes, 'k'));
  if (!signer) {
    std::abort();
  }
  if (const auto opened = cookies::parse_session(*signer, {}, text, kNow);
      opened && cookies::session_token(*signer, *opened) != text) {
    std::abort();
  }
  if (const auto state = cookies::parse_login_state(*signer, text, "s", kNow);
      state && state->state != "s") {
    std::abort();
  }
  const cookies::Session session{.id = "i", .user = std::string(text), .begun = kNow, .used = kNow};
  const std::string token = cookies::session_token(*signer, session);
  const auto again = cookies::parse_session(*signer, {}, token, kNow);
  const bool fits = cookies::is_user_name(text) && token.size() <= cookies::Signer::kMaxTokenBytes;
  if (fits != again.has_value() || (again && again->user != text)) {
    std::abort();
  }
  const std::string next = cookies::safe_next(text);
  if (!next.empty() && (next[0] != '/' || next.starts_with("//") || next != text ||
                        next.find_first_of("\\\r\n") != std::string::npos)) {
    std::abort();
  }
  if (const auto range = ceems::net::Cidr::parse(text); range) {
    const std::string_view address = text.substr(0, text.find('/'));
    const ceems::net::TrustedPeers peers{.ranges = {*range}};
    if (!range->contains(address) || ceems::net::client_address(peers, address, text) != address) {
      std::abort();
    }
  }
  return 0;
}
