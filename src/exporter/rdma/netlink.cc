#include "exporter/rdma/netlink.h"

#include <linux/capability.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include <rdma/rdma_netlink.h>

#include "base/strings.h"

namespace ceems::exporter::rdma {
namespace {

constexpr std::size_t kMaxRecords = 1'000'000;

constexpr std::size_t aligned(std::size_t length) {
  return (length + NLA_ALIGNTO - 1) & ~static_cast<std::size_t>(NLA_ALIGNTO - 1);
}

template <typename T>
std::optional<T> value_at(Bytes data, std::size_t offset = 0) {
  if (data.size() < offset || data.size() - offset < sizeof(T)) {
    return std::nullopt;
  }
  T value{};
  std::memcpy(&value, data.data() + offset, sizeof(T));
  return value;
}

struct Attribute {
  std::uint16_t type = 0;
  Bytes data;
};

/// Removes the next attribute from the front and returns it. Nothing at the end and if the rest is
/// malformed.
std::optional<Attribute> take_attribute(Bytes& rest) {
  const auto header = value_at<nlattr>(rest);
  if (!header || header->nla_len < sizeof(nlattr) || header->nla_len > rest.size()) {
    rest = {};
    return std::nullopt;
  }
  Attribute attribute{static_cast<std::uint16_t>(header->nla_type & NLA_TYPE_MASK),
                      rest.subspan(sizeof(nlattr), header->nla_len - sizeof(nlattr))};
  rest = rest.subspan(std::min(aligned(header->nla_len), rest.size()));
  return attribute;
}

/// The first attribute of a type; empty if there is none.
Bytes find(Bytes attributes, std::uint16_t type) {
  while (const auto attribute = take_attribute(attributes)) {
    if (attribute->type == type) {
      return attribute->data;
    }
  }
  return {};
}

std::string text_of(Bytes data) {
  constexpr std::size_t kMaxName = 64;  // IB_DEVICE_NAME_MAX
  std::string text;
  for (const std::byte byte : data.first(std::min(data.size(), kMaxName))) {
    if (byte == std::byte{0}) {
      break;
    }
    text.push_back(static_cast<char>(byte));
  }
  return text;
}

/// Calls `use` for each entry with a process's pid in a table of the payload.
template <typename Use>
void for_entries(Bytes payload, std::uint16_t table, std::uint16_t entry, Use use) {
  const std::string device = text_of(find(payload, RDMA_NLDEV_ATTR_DEV_NAME));
  Bytes rest = find(payload, table);
  if (device.empty()) {
    return;
  }
  while (const auto attribute = take_attribute(rest)) {
    const auto pid = value_at<std::uint32_t>(find(attribute->data, RDMA_NLDEV_ATTR_RES_PID));
    if (attribute->type == entry && pid && *pid > 0 && std::in_range<int>(*pid)) {
      use(device, static_cast<int>(*pid), attribute->data);
    }
  }
}

std::string port_of(Bytes entry) {
  const auto port = value_at<std::uint32_t>(find(entry, RDMA_NLDEV_ATTR_PORT_INDEX));
  return port ? std::to_string(*port) : std::string();
}

void append(std::vector<std::byte>& out, const void* data, std::size_t size) {
  const auto bytes = std::span(static_cast<const std::byte*>(data), size);
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.resize(aligned(out.size()));
}

void add_values(Bytes counters, QpCounterValues& values) {
  while (const auto attribute = take_attribute(counters)) {
    const std::string name =
        text_of(find(attribute->data, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME));
    const auto value =
        value_at<std::uint64_t>(find(attribute->data, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE));
    const auto known = std::ranges::find(kQpCounters, name);
    if (attribute->type == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY && value &&
        known != kQpCounters.end()) {
      values[static_cast<std::size_t>(known - kQpCounters.begin())] = *value;
    }
  }
}

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kNetlinkDeadline{5};
constexpr std::size_t kMaxBytes = std::size_t{256} << 20U;  // per answer
constexpr std::size_t kBuffer = std::size_t{64} << 10U;     // the kernel sends 32 KiB at most

Result<UniqueFd> open_socket() {
  UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
  if (!fd.valid()) {
    return fail(errno_error(errno, "rdma netlink"));
  }
  return fd;
}

/// Waits for an answer and reads it. kTimeout at the deadline.
Result<std::size_t> receive(const UniqueFd& socket,
                            std::span<std::byte> buffer,
                            SteadyClock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
  pollfd wait{socket.get(), POLLIN, 0};
  if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) {
    return fail(ErrorCode::kTimeout, "rdma netlink: no answer in {} s", kNetlinkDeadline.count());
  }
  const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_TRUNC | MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
    return 0;
  }
  if (size < 0) {
    return fail(errno_error(errno, "rdma netlink"));
  }
  if (std::cmp_greater(size, buffer.size())) {
    return fail(ErrorCode::kParse, "rdma netlink: message of {} bytes", size);
  }
  return static_cast<std::size_t>(size);
}

}  // namespace

std::vector<std::byte> make_request(
    std::uint16_t command,
    bool dump,
    std::uint32_t sequence,
    std::span<const std::pair<std::uint16_t, std::uint32_t>> values) {
  std::vector<std::byte> out;
  nlmsghdr header{};
  header.nlmsg_type = static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command));
  header.nlmsg_flags =
      static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | (dump ? NLM_F_DUMP : 0));
  header.nlmsg_seq = sequence;
  append(out, &header, sizeof(header));
  for (const auto& [type, value] : values) {
    const nlattr attribute{static_cast<std::uint16_t>(sizeof(nlattr) + sizeof(value)), type};
    append(out, &attribute, sizeof(attribute));
    append(out, &value, sizeof(value));
  }
  const auto length = static_cast<std::uint32_t>(out.size());
  std::memcpy(out.data() + offsetof(nlmsghdr, nlmsg_len), &length, sizeof(length));
  return out;
}

Result<Answer> read_answer(Bytes data,
                           std::uint32_t sequence,
                           const std::function<void(Bytes payload)>& use) {
  while (!data.empty()) {
    const auto header = value_at<nlmsghdr>(data);
    if (!header || header->nlmsg_len < sizeof(nlmsghdr) || header->nlmsg_len > data.size()) {
      return fail(ErrorCode::kParse, "malformed netlink message");
    }
    const Bytes payload = data.subspan(sizeof(nlmsghdr), header->nlmsg_len - sizeof(nlmsghdr));
    data = data.subspan(std::min(aligned(header->nlmsg_len), data.size()));
    if (header->nlmsg_seq != sequence) {
      continue;
    }
    if (header->nlmsg_type == NLMSG_ERROR || header->nlmsg_type == NLMSG_DONE) {
      // 0 is an acknowledgement. A dump that failed half-way has the error at its end.
      const int error = value_at<int>(payload).value_or(0);
      if (error < 0 && error > -4096) {
        return fail(errno_error(-error, "rdma netlink"));
      }
      return Answer::kEnd;
    }
    if (header->nlmsg_type >= NLMSG_MIN_TYPE) {
      use(payload);
    }
  }
  return Answer::kMore;
}

std::optional<Device> parse_device(Bytes payload) {
  const auto index = value_at<std::uint32_t>(find(payload, RDMA_NLDEV_ATTR_DEV_INDEX));
  const auto ports = value_at<std::uint32_t>(find(payload, RDMA_NLDEV_ATTR_PORT_INDEX));
  std::string name = text_of(find(payload, RDMA_NLDEV_ATTR_DEV_NAME));
  if (!index || name.empty()) {
    return std::nullopt;
  }
  return Device{*index, std::move(name), ports.value_or(0)};
}

void add_regions(Bytes payload, std::vector<Objects>& regions) {
  for_entries(payload, RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY,
              [&](const std::string& device, int pid, Bytes entry) {
                const auto length = value_at<std::uint64_t>(find(entry, RDMA_NLDEV_ATTR_RES_MRLEN));
                if (length && regions.size() < kMaxRecords) {
                  regions.push_back({device, pid, 1, *length});
                }
              });
}

void add_queues(Bytes payload, std::vector<Objects>& queues) {
  for_entries(payload, RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY,
              [&](const std::string& device, int pid, Bytes entry) {
                const auto entries = value_at<std::uint32_t>(find(entry, RDMA_NLDEV_ATTR_RES_CQE));
                if (entries && queues.size() < kMaxRecords) {
                  queues.push_back({device, pid, 1, *entries});
                }
              });
}

void add_pairs(Bytes payload, std::vector<QueuePairs>& pairs) {
  for_entries(payload, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY,
              [&](const std::string& device, int pid, Bytes entry) {
                if (pairs.size() < kMaxRecords) {
                  pairs.push_back({device, port_of(entry), pid, 1});
                }
              });
}

void add_counters(Bytes payload, std::vector<QpCounters>& counters) {
  for_entries(payload, RDMA_NLDEV_ATTR_STAT_COUNTER, RDMA_NLDEV_ATTR_STAT_COUNTER_ENTRY,
              [&](const std::string& device, int pid, Bytes entry) {
                if (counters.size() < kMaxRecords) {
                  counters.push_back({device, port_of(entry), pid});
                  add_values(find(entry, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS), counters.back().values);
                }
              });
}

std::optional<bool> parse_mode(Bytes payload) {
  const auto mode = value_at<std::uint32_t>(find(payload, RDMA_NLDEV_ATTR_STAT_MODE));
  if (!mode || *mode == RDMA_COUNTER_MODE_MANUAL) {
    return std::nullopt;
  }
  const auto mask = value_at<std::uint32_t>(find(payload, RDMA_NLDEV_ATTR_STAT_AUTO_MODE_MASK));
  return *mode == RDMA_COUNTER_MODE_AUTO && mask.value_or(1) != 0;
}

Result<std::unique_ptr<NetlinkReader>> NetlinkReader::create() {
  CEEMS_TRY(socket, open_socket());
  return std::unique_ptr<NetlinkReader>(new NetlinkReader(std::move(socket)));
}

Result<> NetlinkReader::ask(const UniqueFd& socket,
                            std::uint16_t command,
                            bool dump,
                            const Values& values,
                            const std::function<void(Bytes)>& use) {
  const std::uint32_t sequence = ++sequence_;
  const auto request = make_request(command, dump, sequence, values);
  const auto deadline = SteadyClock::now() + kNetlinkDeadline;
  if (::send(socket.get(), request.data(), request.size(), 0) < 0) {
    return fail(errno_error(errno, "rdma netlink"));
  }
  std::vector<std::byte> buffer(kBuffer);
  for (std::size_t total = 0; total < kMaxBytes;) {
    CEEMS_TRY(size, receive(socket, buffer, deadline));
    total += size;
    CEEMS_TRY(answer, read_answer(Bytes(buffer).first(size), sequence, use));
    if (answer == Answer::kEnd) {
      return {};
    }
  }
  return fail(ErrorCode::kUnavailable, "rdma netlink: answer of more than {} bytes", kMaxBytes);
}

Result<std::vector<Device>> NetlinkReader::devices() {
  std::vector<Device> found;
  CEEMS_TRY(ask(socket_, RDMA_NLDEV_CMD_GET, true, {}, [&](Bytes payload) {
    if (auto device = parse_device(payload)) {
      found.push_back(*std::move(device));
    }
  }));
  return found;
}

/// The kernel answers at once, so the usual limit of a request applies.
Result<std::vector<LinkMode>> NetlinkReader::modes(std::chrono::milliseconds /*limit*/,
                                                   std::stop_token /*stop*/) {
  CEEMS_TRY(found, devices());
  std::vector<LinkMode> modes;
  for (const Device& device : found) {
    constexpr std::uint32_t kMaxPorts = 255;
    for (std::uint32_t port = 1;
         device.name.starts_with("mlx") && port <= std::min(device.ports, kMaxPorts); ++port) {
      // The presence of STAT_MODE requests the mode instead of counters.
      const auto done = ask(socket_, RDMA_NLDEV_CMD_STAT_GET, false,
                            {{RDMA_NLDEV_ATTR_DEV_INDEX, device.index},
                             {RDMA_NLDEV_ATTR_PORT_INDEX, port},
                             {RDMA_NLDEV_ATTR_STAT_MODE, 0},
                             {RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP}},
                            [&](Bytes payload) {
                              if (const auto on = parse_mode(payload)) {
                                modes.push_back({device.name + "/" + std::to_string(port), *on});
                              }
                            });
      if (!done && done.error().code == ErrorCode::kTimeout) {
        return fail(done.error());
      }
    }
  }
  return modes;
}

Result<Resources> NetlinkReader::read(bool counters, std::stop_token stop) {
  CEEMS_TRY(found, devices());
  Resources resources{.regions = std::vector<Objects>(),
                      .queues = std::vector<Objects>(),
                      .pairs = std::vector<QueuePairs>(),
                      .counters = std::nullopt};
  if (counters) {
    resources.counters.emplace();
  }
  std::optional<Error> failure;
  for (const Device& device : found) {
    if (stop.stop_requested()) {
      return fail(ErrorCode::kUnavailable, "stopped");
    }
    const auto dump = [&](std::uint16_t command, Values values, auto add, auto& into) {
      values.emplace_back(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
      const auto done =
          ask(socket_, command, true, values, [&](Bytes payload) { add(payload, *into); });
      // Drivers without such objects return "not supported", and an adapter may disappear
      // meanwhile.
      if (!done && done.error().code == ErrorCode::kTimeout) {
        failure = done.error();
      }
    };
    dump(RDMA_NLDEV_CMD_RES_MR_GET, {}, add_regions, resources.regions);
    dump(RDMA_NLDEV_CMD_RES_CQ_GET, {}, add_queues, resources.queues);
    dump(RDMA_NLDEV_CMD_RES_QP_GET, {}, add_pairs, resources.pairs);
    if (counters) {
      dump(RDMA_NLDEV_CMD_STAT_GET, {{RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP}},
           add_counters, resources.counters);
    }
    if (failure) {
      return fail(*std::move(failure));
    }
  }
  return resources;
}

Result<> NetlinkReader::set_counting(const std::string& link, bool on) {
  CEEMS_TRY(found, devices());
  std::string_view port = link;
  const std::string_view name = take_until(port, '/');
  const auto number = parse_int<std::uint32_t>(port);
  const auto device = std::ranges::find(found, name, &Device::name);
  if (!number || device == found.end()) {
    return fail(ErrorCode::kNotFound, "no port {}", printable(link));
  }
  // The kernel checks both the opener of the socket and the sender.
  const os::RaisedCapabilities raised({CAP_NET_ADMIN});
  CEEMS_TRY(socket, open_socket());
  return ask(socket, RDMA_NLDEV_CMD_STAT_SET, false,
             {{RDMA_NLDEV_ATTR_DEV_INDEX, device->index},
              {RDMA_NLDEV_ATTR_PORT_INDEX, *number},
              {RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP},
              {RDMA_NLDEV_ATTR_STAT_MODE, RDMA_COUNTER_MODE_AUTO},
              {RDMA_NLDEV_ATTR_STAT_AUTO_MODE_MASK,
               on ? RDMA_COUNTER_MASK_QP_TYPE | RDMA_COUNTER_MASK_PID : 0}},
             [](Bytes) {});
}

std::vector<os::Capability> NetlinkReader::capabilities() const {
  return {CAP_NET_ADMIN};
}

}  // namespace ceems::exporter::rdma
