// Cookies of sessions and logins: only what this server sealed opens, and in only one spelling.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "access/session.h"
#include "net/cidr.h"

namespace login = ceems::access;  // "access" is a function of POSIX

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kNow = 1'767'225'600;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const auto signer = login::Signer::create(std::string(login::Signer::kMinKeyBytes, 'k'));
  if (!signer) {
    std::abort();
  }
  if (const auto session = login::parse_session(*signer, {}, text, kNow);
      session && login::session_token(*signer, *session) != text) {
    std::abort();
  }
  if (const auto state = login::parse_login_state(*signer, text, "s", kNow);
      state && state->state != "s") {
    std::abort();
  }
  const login::Session session{.id = "i", .user = std::string(text), .begun = kNow, .used = kNow};
  const std::string token = login::session_token(*signer, session);
  const auto again = login::parse_session(*signer, {}, token, kNow);
  const bool fits = login::is_user_name(text) && token.size() <= login::Signer::kMaxTokenBytes;
  if (fits != again.has_value() || (again && again->user != text)) {
    std::abort();
  }
  const std::string next = login::safe_next(text);
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
