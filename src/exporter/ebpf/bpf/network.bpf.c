// SPDX-License-Identifier: GPL-2.0-or-later
// Counts TCP and UDP traffic by the cgroup that sends or receives. The kernel itself counts the
// traffic of a TCP connection in its socket: these programs remember which cgroup uses a socket
// and what the counters were when it began, so that a call of a known user costs one lookup.

#include "exporter/ebpf/bpf/hook.h"

#define AF_INET 2
#define AF_INET6 10
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define MSG_PEEK 2

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 4096);
  __type(key, struct ebpf_traffic_key);
  __type(value, struct ebpf_traffic_value);
} traffic SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 16384);
  __type(key, u64);
  __type(value, struct ebpf_connection);
} connections SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LPM_TRIE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, struct ebpf_network);
  __type(value, u32);
} networks SEC(".maps");

/// The class of an IPv4 address (`v6` is false) or an IPv6 address, both in network order.
static __always_inline u32 class_of(const void* address, int v6) {
  struct ebpf_network network = {.prefix = 128};
  if (v6) {
    __builtin_memcpy(network.address, address, 16);
  } else {
    network.address[10] = 0xff;
    network.address[11] = 0xff;
    __builtin_memcpy(&network.address[12], address, 4);
  }
  u32* found = bpf_map_lookup_elem(&networks, &network);
  return found ? *found : 0;
}

static __always_inline u32 class_of_peer(struct sock* socket, u16 family) {
  if (family == AF_INET6) {
    struct in6_addr address;
    BPF_CORE_READ_INTO(&address, socket, __sk_common.skc_v6_daddr);
    return class_of(&address, 1);
  }
  __be32 address = BPF_CORE_READ(socket, __sk_common.skc_daddr);
  return class_of(&address, 0);
}

static __always_inline struct ebpf_traffic_value* traffic_row(struct ebpf_traffic_key* key) {
  struct ebpf_traffic_value* value = bpf_map_lookup_elem(&traffic, key);
  if (value) {
    return value;
  }
  struct ebpf_traffic_value zero = {};
  bpf_map_update_elem(&traffic, key, &zero, BPF_NOEXIST);
  value = bpf_map_lookup_elem(&traffic, key);
  if (!value) {
    COUNT_LOST(traffic);
  }
  return value;
}

// --- TCP
// ------------------------------------------------------------------------------------------

static __always_inline void read_counters(const void* socket, struct ebpf_tcp_counters* counters) {
  const struct tcp_sock* tcp = socket;
  counters->bytes_received = BPF_CORE_READ(tcp, bytes_received);
  counters->bytes_sent = BPF_CORE_READ(tcp, bytes_sent);
  counters->bytes_retrans = BPF_CORE_READ(tcp, bytes_retrans);
  counters->segs_in = BPF_CORE_READ(tcp, segs_in);
  counters->segs_out = BPF_CORE_READ(tcp, segs_out);
  counters->total_retrans = BPF_CORE_READ(tcp, total_retrans);
}

/// What its user sent and received on the connection since it began to use it.
static __always_inline void describe_use(void* socket,
                                         const struct ebpf_connection* connection,
                                         struct ebpf_traffic_key* key,
                                         struct ebpf_traffic_value* value) {
  struct ebpf_tcp_counters now;
  read_counters(socket, &now);
  key->cgroup = connection->cgroup;
  key->protocol = PROTOCOL_TCP;
  key->family = BPF_CORE_READ((struct sock*)socket, __sk_common.skc_family);
  key->network_class = settings.classes ? class_of_peer(socket, key->family) : 0;
  // Segments are counted in 32 bits, which wrap on a long connection.
  value->ingress_packets = (u32)(now.segs_in - connection->begin.segs_in);
  value->ingress_bytes = now.bytes_received - connection->begin.bytes_received;
  value->egress_packets = (u32)(now.segs_out - connection->begin.segs_out);
  value->egress_bytes = now.bytes_sent - connection->begin.bytes_sent;
  value->retrans_packets = (u32)(now.total_retrans - connection->begin.total_retrans);
  value->retrans_bytes = now.bytes_retrans - connection->begin.bytes_retrans;
}

/// Adds what the connection's user sent and received to `traffic`.
static __always_inline void settle(void* socket, const struct ebpf_connection* connection) {
  struct ebpf_traffic_key key = {};
  struct ebpf_traffic_value use = {};
  describe_use(socket, connection, &key, &use);
  struct ebpf_traffic_value* value = traffic_row(&key);
  if (value) {
    ADD(value->ingress_packets, use.ingress_packets);
    ADD(value->ingress_bytes, use.ingress_bytes);
    ADD(value->egress_packets, use.egress_packets);
    ADD(value->egress_bytes, use.egress_bytes);
    ADD(value->retrans_packets, use.retrans_packets);
    ADD(value->retrans_bytes, use.retrans_bytes);
  }
}

/// From now on the current cgroup uses the socket. `begin`: its counters now; null if they are 0.
static __always_inline void take(u64 socket, u64 cgroup, const struct ebpf_tcp_counters* begin) {
  struct ebpf_connection connection = {.cgroup = cgroup};
  if (begin) {
    connection.begin = *begin;
  }
  if (!note_cgroup(cgroup)) {
    return;
  }
  if (bpf_map_update_elem(&connections, &socket, &connection, BPF_ANY) != 0) {
    COUNT_LOST(connections);
  }
}

/// A connection whose user is not known or has changed. `received` and `sent`: bytes of this call,
/// which belong to the caller.
static __noinline int change_user(u64 socket, u64 cgroup, u64 received, u64 sent) {
  struct ebpf_connection* known = bpf_map_lookup_elem(&connections, &socket);
  if (known) {
    struct ebpf_connection before = *known;
    settle((void*)socket, &before);
  }
  struct ebpf_tcp_counters begin;
  __builtin_memset(&begin, 0, sizeof(begin));
  read_counters((void*)socket, &begin);
  if (!known) {
    // It is older than this program, or it was forgotten.
    begin.bytes_received -= received < begin.bytes_received ? received : begin.bytes_received;
    begin.bytes_sent -= sent < begin.bytes_sent ? sent : begin.bytes_sent;
  }
  take(socket, cgroup, &begin);
  return 0;
}

/// Failed calls that applications expect: nothing to do now, interrupted.
static __always_inline int is_failure(s64 result) {
  return result < 0 && result != -11 && result != -4 && result != -512;
}

static __noinline int count_errors(u64 cgroup, u64 protocol, u64 family, u64 sending) {
  struct ebpf_traffic_key key = {.cgroup = cgroup, .protocol = protocol, .family = family};
  struct ebpf_traffic_value* value = note_cgroup(cgroup) ? traffic_row(&key) : 0;
  if (value && sending) {
    ADD(value->egress_errors, 1);
  } else if (value) {
    ADD(value->ingress_errors, 1);
  }
  return 0;
}

static __always_inline int use_connection(u64* context, enum ebpf_hook hook, int sending) {
  u64 cgroup = current_cgroup();
  if (cgroup <= 1) {
    return 0;
  }
  struct sock* sock = (struct sock*)context[0];
  u64 socket = (u64)sock;
  s64 result = result_of(context, hook);
  struct ebpf_connection* known = bpf_map_lookup_elem(&connections, &socket);
  if (!known || known->cgroup != cgroup) {
    u64 bytes = result > 0 ? result : 0;
    change_user(socket, cgroup, sending ? 0 : bytes, sending ? bytes : 0);
  }
  if (is_failure(result)) {
    count_errors(cgroup, PROTOCOL_TCP, sock->__sk_common.skc_family, sending);
  }
  return 0;
}

SEC("fexit/tcp_sendmsg")
int tcp_sendmsg(u64* context) {
  return use_connection(context, EBPF_TCP_SENDMSG, 1);
}

SEC("fexit/tcp_recvmsg")
int tcp_recvmsg(u64* context) {
  return use_connection(context, EBPF_TCP_RECVMSG, 0);
}

/// The current cgroup gets a new connection, all of whose traffic is its own.
static __always_inline int new_connection(u64 socket) {
  u64 cgroup = current_cgroup();
  if (cgroup > 1) {
    take(socket, cgroup, 0);
  }
  return 0;
}

SEC("fexit/inet_csk_accept")
int inet_csk_accept(u64* context) {
  u64 socket = slot(context, settings.hooks[EBPF_TCP_ACCEPT].arguments);
  return socket ? new_connection(socket) : 0;
}

SEC("fentry/tcp_v4_connect")
int tcp_v4_connect(u64* context) {
  return new_connection(context[0]);
}

SEC("fentry/tcp_v6_connect")
int tcp_v6_connect(u64* context) {
  return new_connection(context[0]);
}

static __always_inline int end_connection(u64 socket) {
  struct ebpf_connection* known = bpf_map_lookup_elem(&connections, &socket);
  if (known) {
    struct ebpf_connection connection = *known;
    if (bpf_map_delete_elem(&connections, &socket) == 0) {
      settle((void*)socket, &connection);
    }
  }
  return 0;
}

/// The counters start anew.
SEC("fentry/tcp_disconnect")
int tcp_disconnect(u64* context) {
  return end_connection(context[0]);
}

/// The end of every TCP socket, over IPv6 as well, when nothing is sent any more.
SEC("fentry/tcp_v4_destroy_sock")
int tcp_v4_destroy_sock(u64* context) {
  return end_connection(context[0]);
}

SEC("iter/bpf_map_elem")
int open_connections(struct bpf_iter__bpf_map_elem* context) {
  u64* key = context->key;
  struct ebpf_connection* value = context->value;
  struct seq_file* seq = context->meta->seq;
  if (!key || !value) {
    return 0;
  }
  struct ebpf_open_connection open = {.socket = *key};
  struct ebpf_connection connection = *value;
  describe_use((void*)open.socket, &connection, &open.key, &open.value);
  bpf_seq_write(seq, &open, sizeof(open));
  return 0;
}

// --- UDP
// ------------------------------------------------------------------------------------------

/// The class of the address in msghdr::msg_name: of the receiver of a message, after a call that
/// receives the sender. Of the peer of a connected socket if there is none.
static __always_inline u32 class_of_message(struct sock* socket,
                                            struct msghdr* message,
                                            u16 family) {
  void* name = message->msg_name;
  if (!name) {
    return class_of_peer(socket, family);
  }
  u8 bytes[24] = {};
  bpf_probe_read_kernel(bytes, sizeof(bytes), name);
  return *(u16*)bytes == AF_INET6 ? class_of(&bytes[8], 1) : class_of(&bytes[4], 0);
}

static __always_inline int count_message(u64* context,
                                         enum ebpf_hook hook,
                                         u16 family,
                                         int sending) {
  u64 cgroup = current_cgroup();
  if (cgroup <= 1) {
    return 0;
  }
  s64 result = result_of(context, hook);
  struct sock* socket = (struct sock*)context[0];
  // An IPv6 socket sends to an IPv4 address by the function of IPv4, inside the one of IPv6.
  if (family == AF_INET && socket->__sk_common.skc_family == AF_INET6) {
    return 0;
  }
  if (result <= 0) {
    return is_failure(result) ? count_errors(cgroup, PROTOCOL_UDP, family, sending) : 0;
  }
  if (!sending && settings.hooks[hook].flags_slot < 8 &&
      (slot(context, settings.hooks[hook].flags_slot) & MSG_PEEK)) {
    return 0;
  }
  struct ebpf_traffic_key key = {.cgroup = cgroup, .protocol = PROTOCOL_UDP, .family = family};
  if (settings.classes) {
    key.network_class = class_of_message(socket, (struct msghdr*)context[1], family);
  }
  struct ebpf_traffic_value* value = bpf_map_lookup_elem(&traffic, &key);
  if (!value && !(note_cgroup(cgroup) && (value = traffic_row(&key)))) {
    return 0;
  }
  if (sending) {
    ADD(value->egress_packets, 1);
    ADD(value->egress_bytes, result);
  } else {
    ADD(value->ingress_packets, 1);
    ADD(value->ingress_bytes, result);
  }
  return 0;
}

SEC("fexit/udp_sendmsg")
int udp_sendmsg(u64* context) {
  return count_message(context, EBPF_UDP_SENDMSG, AF_INET, 1);
}

SEC("fexit/udp_recvmsg")
int udp_recvmsg(u64* context) {
  return count_message(context, EBPF_UDP_RECVMSG, AF_INET, 0);
}

SEC("fexit/udpv6_sendmsg")
int udpv6_sendmsg(u64* context) {
  return count_message(context, EBPF_UDP6_SENDMSG, AF_INET6, 1);
}

SEC("fexit/udpv6_recvmsg")
int udpv6_recvmsg(u64* context) {
  return count_message(context, EBPF_UDP6_RECVMSG, AF_INET6, 0);
}
