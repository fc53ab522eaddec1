#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::net {

/// The page that most of our servers answer without work.
inline constexpr std::string_view kHealthPath = "/health";

/// Whether the server of this machine at a listen address (":9010", "[::1]:9010", "unix:/path", as
/// in a flag or in Server::addresses()) reacts to a request. An address for all interfaces is asked
/// over loopback. Any reaction counts, even a refusal because of a missing password or TLS: the
/// check is whether the program still works. Errors: kInvalidArgument for the address, kUnavailable
/// if nothing listens there, kTimeout if nothing happened in `timeout`.
Result<> probe(std::string_view address,
               std::chrono::milliseconds timeout,
               std::string_view path = kHealthPath);

/// Whether all of the addresses react within `timeout` each. Addresses of vsock count as reacting:
/// not every machine can connect to itself that way.
bool all_react(const std::vector<std::string>& addresses,
               std::chrono::milliseconds timeout,
               std::string_view path = kHealthPath);

/// For the flag --health: probes the addresses, prints what is wrong to standard error, and returns
/// the exit status, 0 or 1.
int report_health(const std::vector<std::string>& addresses, std::string_view path = kHealthPath);

}  // namespace ceems::net
