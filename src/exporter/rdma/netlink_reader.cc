#include "exporter/rdma/netlink_reader.h"

#include <linux/capability.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include <rdma/rdma_netlink.h>

#include "base/strings.h"

namespace ceems::exporter::rdma {
namespace {

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
