#include "exporter/rdma/netlink.h"

#include <linux/netlink.h>

#include <cstring>

#include <gtest/gtest.h>
#include <rdma/rdma_netlink.h>

namespace ceems::exporter::rdma {
namespace {

using Message = std::vector<std::byte>;

void append(Message& out, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + size);
  out.resize((out.size() + 3) / 4 * 4);
}

void put(Message& out, std::uint16_t type, const void* data, std::size_t size) {
  const nlattr header{static_cast<std::uint16_t>(sizeof(nlattr) + size), type};
  append(out, &header, sizeof(header));
  append(out, data, size);
}

void put_u32(Message& out, std::uint16_t type, std::uint32_t value) {
  put(out, type, &value, sizeof(value));
}
void put_u64(Message& out, std::uint16_t type, std::uint64_t value) {
  put(out, type, &value, sizeof(value));
}
void put_text(Message& out, std::uint16_t type, const std::string& text) {
  put(out, type, text.c_str(), text.size() + 1);
}
void put_nested(Message& out, std::uint16_t type, const Message& inner) {
  put(out, static_cast<std::uint16_t>(type | NLA_F_NESTED), inner.data(), inner.size());
}

/// The answer to a dump, for an adapter with a table of entries.
Message table_of(std::uint16_t table, std::uint16_t entry, const std::vector<Message>& entries) {
  Message rows;
  for (const Message& row : entries) {
    put_nested(rows, entry, row);
  }
  Message out;
  put_u32(out, RDMA_NLDEV_ATTR_DEV_INDEX, 3);
  put_text(out, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0");
  put_nested(out, table, rows);
  return out;
}

Message message(std::uint16_t type, std::uint32_t sequence, const Message& payload) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof(header) + payload.size());
  header.nlmsg_type = type;
  header.nlmsg_seq = sequence;
  Message out;
  append(out, &header, sizeof(header));
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

Message error_message(std::uint16_t type, std::uint32_t sequence, int error) {
  Message payload;
  append(payload, &error, sizeof(error));
  return message(type, sequence, payload);
}

TEST(RdmaNetlink, ReadsAdapters) {
  Message payload;
  put_u32(payload, RDMA_NLDEV_ATTR_DEV_INDEX, 3);
  put_text(payload, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0");
  put_u32(payload, RDMA_NLDEV_ATTR_PORT_INDEX, 2);
  const auto device = parse_device(payload);
  ASSERT_TRUE(device);
  EXPECT_EQ(device->index, 3U);
  EXPECT_EQ(device->name, "mlx5_0");
  EXPECT_EQ(device->ports, 2U);
  EXPECT_FALSE(parse_device({}));
}

TEST(RdmaNetlink, ReadsMemoryRegionsOfProcesses) {
  Message mine;
  put_u32(mine, RDMA_NLDEV_ATTR_RES_PID, 77);
  put_u64(mine, RDMA_NLDEV_ATTR_RES_MRLEN, 4096);
  Message kernel;
  put_text(kernel, RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core");
  put_u64(kernel, RDMA_NLDEV_ATTR_RES_MRLEN, 8192);
  std::vector<Objects> regions;
  add_regions(table_of(RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY, {kernel, mine}),
              regions);
  ASSERT_EQ(regions.size(), 1U);
  EXPECT_EQ(regions[0].device, "mlx5_0");
  EXPECT_EQ(regions[0].pid, 77);
  EXPECT_EQ(regions[0].size, 4096U);
}

TEST(RdmaNetlink, ReadsCompletionQueuesOfProcesses) {
  Message mine;
  put_u32(mine, RDMA_NLDEV_ATTR_RES_CQE, 1023);
  put_u32(mine, RDMA_NLDEV_ATTR_RES_PID, 77);
  Message of_nobody;
  put_u32(of_nobody, RDMA_NLDEV_ATTR_RES_CQE, 1023);
  put_u32(of_nobody, RDMA_NLDEV_ATTR_RES_PID, 0);
  std::vector<Objects> queues;
  add_queues(table_of(RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY, {mine, of_nobody}),
             queues);
  ASSERT_EQ(queues.size(), 1U);
  EXPECT_EQ(queues[0].size, 1023U);
}

TEST(RdmaNetlink, ReadsQueuePairsOfProcesses) {
  Message with_port;
  put_u32(with_port, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  put_u32(with_port, RDMA_NLDEV_ATTR_RES_LQPN, 813);
  put_u32(with_port, RDMA_NLDEV_ATTR_RES_PID, 77);
  Message without;
  put_u32(without, RDMA_NLDEV_ATTR_RES_PID, 78);
  std::vector<QueuePairs> pairs;
  add_pairs(table_of(RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY, {with_port, without}),
            pairs);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].port, "1");
  EXPECT_EQ(pairs[0].pid, 77);
  EXPECT_EQ(pairs[1].port, "");
}

TEST(RdmaNetlink, ReadsCountersOfProcesses) {
  Message values;
  for (const auto& [name, value] :
       {std::pair("rx_write_requests", 41U), std::pair("out_of_buffer", 5U),
        std::pair("req_cqe_error", 2U)}) {
    Message one;
    put_text(one, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
    put_u64(one, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, value);
    put_nested(values, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY, one);
  }
  Message entry;
  put_u32(entry, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
  put_u32(entry, RDMA_NLDEV_ATTR_STAT_COUNTER_ID, 5);
  put_u32(entry, RDMA_NLDEV_ATTR_RES_PID, 77);
  put_nested(entry, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS, values);
  std::vector<QpCounters> counters;
  add_counters(table_of(RDMA_NLDEV_ATTR_STAT_COUNTER, RDMA_NLDEV_ATTR_STAT_COUNTER_ENTRY, {entry}),
               counters);
  ASSERT_EQ(counters.size(), 1U);
  EXPECT_EQ(counters[0].port, "1");
  EXPECT_EQ(counters[0].values[0], 41U);
  EXPECT_EQ(counters[0].values[3], 2U);
  EXPECT_EQ(counters[0].values[1], 0U);
}

TEST(RdmaNetlink, ReadsModes) {
  const auto mode = [](std::uint32_t kind, std::optional<std::uint32_t> mask) {
    Message payload;
    put_u32(payload, RDMA_NLDEV_ATTR_STAT_MODE, kind);
    if (mask) {
      put_u32(payload, RDMA_NLDEV_ATTR_STAT_AUTO_MODE_MASK, *mask);
    }
    return parse_mode(payload);
  };
  EXPECT_EQ(mode(RDMA_COUNTER_MODE_NONE, {}), false);
  EXPECT_EQ(mode(RDMA_COUNTER_MODE_AUTO, 3), true);
  EXPECT_EQ(mode(RDMA_COUNTER_MODE_MANUAL, {}), std::nullopt);
  EXPECT_EQ(parse_mode({}), std::nullopt);
}

TEST(RdmaNetlink, ReadsMessagesUntilTheEnd) {
  const std::uint16_t type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_MR_GET);
  Message first;
  put_u32(first, RDMA_NLDEV_ATTR_DEV_INDEX, 1);
  int used = 0;
  const auto count = [&](Bytes payload) {
    ++used;
    EXPECT_EQ(payload.size(), first.size());
  };
  Message data = message(type, 7, first);
  EXPECT_EQ(read_answer(data, 7, count).value(), Answer::kMore);
  EXPECT_EQ(read_answer(data, 8, count).value(), Answer::kMore);  // the answer to another request
  EXPECT_EQ(used, 1);
  const Message end = error_message(NLMSG_DONE, 7, 0);
  data.insert(data.end(), end.begin(), end.end());
  EXPECT_EQ(read_answer(data, 7, count).value(), Answer::kEnd);
  EXPECT_EQ(used, 2);
  EXPECT_EQ(read_answer(error_message(NLMSG_ERROR, 7, 0), 7, count).value(), Answer::kEnd);
}

TEST(RdmaNetlink, ReturnsErrorsOfTheKernel) {
  const auto ignore = [](Bytes) {};
  const auto refused = read_answer(error_message(NLMSG_ERROR, 7, -EPERM), 7, ignore);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermissionDenied);
  const auto half = read_answer(error_message(NLMSG_DONE, 7, -EOPNOTSUPP), 7, ignore);
  ASSERT_FALSE(half);
  Message cut = message(20, 7, Message(40));
  cut.resize(30);
  EXPECT_EQ(read_answer(cut, 7, ignore).error().code, ErrorCode::kParse);
  EXPECT_EQ(read_answer(Message(8), 7, ignore).error().code, ErrorCode::kParse);
}

TEST(RdmaNetlink, SurvivesMalformedAttributes) {
  Message mine;
  put_u32(mine, RDMA_NLDEV_ATTR_RES_PID, 77);
  put_u64(mine, RDMA_NLDEV_ATTR_RES_MRLEN, 4096);
  const Message whole = table_of(RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY, {mine});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::vector<Objects> regions;
    add_regions(Bytes(whole).first(length), regions);
    EXPECT_TRUE(regions.empty()) << length;
  }
  Message zero(16);  // an attribute of length 0 would never end
  std::vector<Objects> regions;
  add_regions(zero, regions);
  EXPECT_TRUE(regions.empty());
}

TEST(RdmaNetlink, BuildsRequestsInTheKernelsFormat) {
  const std::vector<std::pair<std::uint16_t, std::uint32_t>> values{{RDMA_NLDEV_ATTR_DEV_INDEX, 3}};
  const Message request = make_request(RDMA_NLDEV_CMD_RES_QP_GET, true, 9, values);
  ASSERT_EQ(request.size(), sizeof(nlmsghdr) + 8);
  nlmsghdr header{};
  std::memcpy(&header, request.data(), sizeof(header));
  EXPECT_EQ(header.nlmsg_len, request.size());
  EXPECT_EQ(header.nlmsg_type, (5U << 10U) + 10U);
  EXPECT_EQ(header.nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP);
  EXPECT_EQ(header.nlmsg_seq, 9U);
}

TEST(RdmaNetlinkLive, ReadsFromTheKernel) {
  auto reader = NetlinkReader::create();
  if (!reader) {
    GTEST_SKIP() << "kernel without RDMA: " << reader.error().message;
  }
  EXPECT_TRUE((*reader)->modes(std::chrono::seconds(1), {}));
  const auto resources = (*reader)->read(false, {});
  ASSERT_TRUE(resources) << resources.error().message;
  EXPECT_TRUE(resources->pairs);
}

}  // namespace
}  // namespace ceems::exporter::rdma
