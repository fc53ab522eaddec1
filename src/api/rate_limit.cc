#include "api/rate_limit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/strings.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

constexpr std::size_t kMaxClients = 100'000;

/// The canonical spelling of an address, with IPv6 cut to /64. Other text is only shortened.
std::string canonical_client(std::string_view text) {
  constexpr std::size_t kMaxText = 64;
  std::string address(trim(text).substr(0, kMaxText));
  in6_addr ipv6{};
  if (::inet_pton(AF_INET6, address.c_str(), &ipv6) != 1) {
    return address;
  }
  std::fill(std::begin(ipv6.s6_addr) + 8, std::end(ipv6.s6_addr), std::uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  if (::inet_ntop(AF_INET6, &ipv6, buffer.data(), buffer.size()) == nullptr) {
    return address;
  }
  return buffer.data();
}

}  // namespace

void RateLimiter::forget_old(std::int64_t minute) {
  if (clients_.size() < kMaxClients) {
    return;
  }
  std::erase_if(clients_, [minute](const auto& entry) { return entry.second.minute + 1 < minute; });
  if (clients_.size() >= kMaxClients) {
    // No site has this many addresses within two minutes, so they are forged.
    clients_.clear();
  }
}

RateLimiter::Verdict RateLimiter::count(const std::string& client, std::int64_t now_ms) {
  const std::int64_t minute = now_ms / kMinuteMs;
  const double fraction = static_cast<double>(now_ms % kMinuteMs) / static_cast<double>(kMinuteMs);
  const MutexLock lock(mutex_);
  forget_old(minute);
  Counts& counts = clients_[client];
  if (counts.minute != minute) {
    counts.previous = counts.minute + 1 == minute ? counts.current : 0;
    counts.current = 0;
    counts.minute = minute;
  }
  const double rate =
      static_cast<double>(counts.previous) * (1 - fraction) + static_cast<double>(counts.current);
  const long used = std::lround(rate);
  Verdict verdict{
      .allowed = used + 1 <= limit_, .remaining = 0, .reset = (minute + 1) * kMinuteMs / 1000};
  if (verdict.allowed) {
    ++counts.current;
    verdict.remaining = std::max(0L, limit_ - used - 1);
  }
  return verdict;
}

std::string RateLimiter::client_of(const net::Request& request) const {
  const bool trusted =
      peers_.proxies.ranges.empty() || peers_.proxies.contains(request.remote_address);
  if (trusted) {
    for (const std::string_view name : {"True-Client-IP", "X-Real-IP", "X-Forwarded-For"}) {
      const std::string* value = net::find_header(request.headers, name);
      if (value != nullptr && !value->empty()) {
        std::string_view rest = *value;
        return canonical_client(take_until(rest, ','));
      }
    }
  }
  return canonical_client(request.remote_address);
}

bool RateLimiter::is_exempt(const net::Request& request) const {
  if (peers_.exempt.ranges.empty()) {
    return false;
  }
  // Some proxies add their own line behind the client's.
  std::string forwarded;
  for (const auto& [name, value] : request.headers) {
    if (same_in_any_case(name, "X-Forwarded-For")) {
      forwarded += (forwarded.empty() ? "" : ",") + value;
    }
  }
  const std::string client = net::client_address(peers_.proxies, request.remote_address, forwarded);
  // TrustedPeers trusts Unix sockets, but here they are not among the configured ranges.
  return net::canonical_address(client) && peers_.exempt.contains(client);
}

bool RateLimiter::admit(const net::Request& request, net::Response& response, std::int64_t now_ms) {
  if (is_exempt(request)) {
    return true;
  }
  const Verdict verdict = count(client_of(request), now_ms);
  response.set_header("X-Ratelimit-Limit", std::to_string(limit_));
  response.set_header("X-Ratelimit-Remaining", std::to_string(verdict.remaining));
  response.set_header("X-Ratelimit-Reset", std::to_string(verdict.reset));
  if (!verdict.allowed) {
    response.status = 429;
    response.set_header("Retry-After", "60");
    response.set_header("Content-Type", "text/plain; charset=utf-8");
    response.set_header("X-Content-Type-Options", "nosniff");
    response.body = "Too Many Requests\n";
  }
  return verdict.allowed;
}

}  // namespace ceems::api
