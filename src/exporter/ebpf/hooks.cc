#include "exporter/ebpf/hooks.h"

#include <array>

namespace ceems::exporter::ebpf {
namespace {

constexpr std::array<Hook, EBPF_HOOKS> kHooks{{
    {EBPF_VFS_READ, "vfs_read", HookPart::kFiles, "read(2)"},
    {EBPF_VFS_READV, "vfs_readv", HookPart::kFiles, "readv(2)"},
    {EBPF_VFS_WRITE, "vfs_write", HookPart::kFiles, "write(2)"},
    {EBPF_VFS_WRITEV, "vfs_writev", HookPart::kFiles, "writev(2)"},
    {EBPF_VFS_COPY_FILE_RANGE, "vfs_copy_file_range", HookPart::kFiles, "copy_file_range(2)"},
    {EBPF_SENDFILE, "do_splice_direct", HookPart::kFiles, "sendfile(2)"},
    {EBPF_VFS_OPEN, "vfs_open", HookPart::kFiles, "opened files"},
    {EBPF_VFS_CREATE, "vfs_create", HookPart::kFiles, "files created by mknod(2)"},
    {EBPF_VFS_MKDIR, "vfs_mkdir", HookPart::kFiles, "created directories"},
    {EBPF_VFS_UNLINK, "vfs_unlink", HookPart::kFiles, "removed files"},
    {EBPF_VFS_RMDIR, "vfs_rmdir", HookPart::kFiles, "removed directories"},
    {EBPF_DO_RMDIR, "do_rmdir", HookPart::kFiles, "removed directories", false, true},
    {EBPF_VFS_FSYNC, "vfs_fsync_range", HookPart::kFiles, "latency of fsync(2)", true},
    {EBPF_TCP_SENDMSG, "tcp_sendmsg", HookPart::kNetwork, "TCP connections that only send"},
    {EBPF_TCP_RECVMSG, "tcp_recvmsg", HookPart::kNetwork, "TCP connections that only receive"},
    {EBPF_TCP_ACCEPT, "inet_csk_accept", HookPart::kNetwork, "handshakes of accepted connections"},
    {EBPF_TCP_CONNECT, "tcp_v4_connect", HookPart::kNetwork, "handshakes over IPv4"},
    {EBPF_TCP_CONNECT6, "tcp_v6_connect", HookPart::kNetwork, "handshakes over IPv6"},
    {EBPF_TCP_DISCONNECT, "tcp_disconnect", HookPart::kNetwork, "sockets that connect twice"},
    {EBPF_TCP_DESTROY, "tcp_v4_destroy_sock", HookPart::kNetwork, "ended TCP connections"},
    {EBPF_UDP_SENDMSG, "udp_sendmsg", HookPart::kNetwork, "UDP sent over IPv4"},
    {EBPF_UDP_RECVMSG, "udp_recvmsg", HookPart::kNetwork, "UDP received over IPv4"},
    {EBPF_UDP6_SENDMSG, "udpv6_sendmsg", HookPart::kNetwork, "UDP sent over IPv6"},
    {EBPF_UDP6_RECVMSG, "udpv6_recvmsg", HookPart::kNetwork, "UDP received over IPv6"},
}};

}  // namespace

std::span<const Hook> all_hooks() {
  return kHooks;
}

std::vector<const Hook*> fit_hooks(const KernelTypes& types,
                                   HookPart part,
                                   ebpf_settings& settings) {
  std::vector<const Hook*> missing;
  for (const Hook& hook : kHooks) {
    if (hook.part != part || (hook.latency && settings.latency == 0)) {
      continue;
    }
    const auto prototype = types.function(std::string(hook.function));
    if (prototype) {
      settings.hooks[hook.id] = *prototype;
    } else if (!hook.spare) {
      missing.push_back(&hook);
    }
  }
  return missing;
}

}  // namespace ceems::exporter::ebpf
