#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::net {

/// Inodes of the sockets that listen on a port, from the text of /proc/net/tcp or tcp6
/// (Documentation/networking/proc_net_tcp.rst). Lines in any other format are skipped.
std::vector<std::uint64_t> listening_inodes(std::string_view table, std::uint16_t port);

/// The process that listens on a TCP port, as "process 1234 (prometheus)". Empty if none is found,
/// for example because the caller may not see it.
std::string port_holder(std::uint16_t port, const std::filesystem::path& proc = "/proc");

}  // namespace ceems::net
