#include "exporter/ebpf/kernel_types.h"

#include <linux/btf.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "exporter/ebpf/bpf_library.h"

namespace ceems::exporter::ebpf {
namespace {

constexpr unsigned kMaxArguments = 6;  // those that are passed in registers
constexpr std::uint8_t kNone = 255;

/// Skips const, volatile and typedef.
const btf_type* plain_type(const btf* types, std::uint32_t id) {
  const btf_type* type = bpf().btf_type(types, id);
  for (int i = 0; type != nullptr && i < 16; ++i) {
    const auto kind = BTF_INFO_KIND(type->info);
    if (kind != BTF_KIND_CONST && kind != BTF_KIND_VOLATILE && kind != BTF_KIND_TYPEDEF) {
      return type;
    }
    type = bpf().btf_type(types, type->type);
  }
  return type;
}

std::uint8_t result_kind(const btf* types, std::uint32_t id) {
  const btf_type* type = plain_type(types, id);
  if (type == nullptr || id == 0) {
    return EBPF_RESULT_LONG;
  }
  switch (BTF_INFO_KIND(type->info)) {
    case BTF_KIND_PTR:
      return EBPF_RESULT_POINTER;
    case BTF_KIND_INT:
    case BTF_KIND_ENUM:
      return type->size <= 4 ? EBPF_RESULT_INT : EBPF_RESULT_LONG;
    default:
      return EBPF_RESULT_LONG;
  }
}

Result<KernelTypes> loaded(::btf* types, std::string_view what) {
  const long error = bpf().get_error(types);
  if (types == nullptr || error != 0) {
    return fail(ErrorCode::kNotFound, "{}: {}", what,
                std::generic_category().message(error != 0 ? static_cast<int>(-error) : errno));
  }
  return KernelTypes(types);
}

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

KernelTypes::KernelTypes(::btf* types) : types_(types, bpf().btf_free) {}

Result<KernelTypes> KernelTypes::running() {
  CEEMS_TRY(load_bpf());
  return loaded(bpf().btf_load_vmlinux(), "the kernel has no type information (BTF)");
}

Result<KernelTypes> KernelTypes::read(const std::string& path) {
  CEEMS_TRY(load_bpf());
  return loaded(bpf().btf_parse_raw(path.c_str()), path);
}

std::optional<ebpf_prototype> KernelTypes::function(const std::string& name) const {
  const int id = bpf().btf_find(types_.get(), name.c_str(), BTF_KIND_FUNC);
  if (id <= 0) {
    return std::nullopt;
  }
  const btf_type* function = bpf().btf_type(types_.get(), static_cast<std::uint32_t>(id));
  const btf_type* prototype =
      function == nullptr ? nullptr : bpf().btf_type(types_.get(), function->type);
  if (prototype == nullptr || BTF_INFO_KIND(prototype->info) != BTF_KIND_FUNC_PROTO ||
      BTF_INFO_VLEN(prototype->info) > kMaxArguments) {
    return std::nullopt;
  }
  ebpf_prototype found{};
  found.arguments = static_cast<std::uint8_t>(BTF_INFO_VLEN(prototype->info));
  found.result = result_kind(types_.get(), prototype->type);
  found.flags_slot = kNone;
  // The parameters follow the type.
  const std::span parameters(
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the format's layout
      reinterpret_cast<const btf_param*>(prototype + 1), found.arguments);
  for (std::uint8_t i = 0; i < found.arguments; ++i) {
    const char* parameter = bpf().btf_name(types_.get(), parameters[i].name_off);
    if (parameter != nullptr && std::string_view(parameter) == "flags") {
      found.flags_slot = i;
    }
  }
  return found;
}

std::optional<unsigned> KernelTypes::controller(std::string_view name) const {
  name = name.substr(0, name.find(','));
  const int id = bpf().btf_find(types_.get(), "cgroup_subsys_id", BTF_KIND_ENUM);
  const btf_type* type =
      id <= 0 ? nullptr : bpf().btf_type(types_.get(), static_cast<std::uint32_t>(id));
  if (type == nullptr) {
    return std::nullopt;
  }
  const std::string wanted = std::string(name == "blkio" ? "io" : name) + "_cgrp_id";
  const std::span values(
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the format's layout
      reinterpret_cast<const struct btf_enum*>(type + 1), BTF_INFO_VLEN(type->info));
  for (const struct btf_enum& value : values) {
    const char* text = bpf().btf_name(types_.get(), value.name_off);
    if (text != nullptr && wanted == text && value.val >= 0) {
      return static_cast<unsigned>(value.val);
    }
  }
  return std::nullopt;
}

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
