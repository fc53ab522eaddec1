#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::net {

/// Inodes of the sockets that listen on a port, from the text of /proc/net/tcp or tcp6
/// (Documentation/networking/proc_net_tcp.rst). Lines of another form are passed over.
std::vector<std::uint64_t> listening_inodes(std::string_view table, std::uint16_t port);

/// "process 1234 (prometheus)" for who listens on a TCP port, as far as the caller may see it;
/// empty when it cannot be told.
std::string port_holder(std::uint16_t port, const std::filesystem::path& proc = "/proc");

}  // namespace ceems::net
