// Messages of the RDMA netlink family, read as every type.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "exporter/rdma/netlink.h"

using namespace ceems::exporter::rdma;  // NOLINT(google-build-using-namespace): one short file

namespace {

void check_payload(Bytes payload) {
  if (const auto device = parse_device(payload)) {
    CEEMS_CHECK(!device->name.empty());
  }
  std::vector<Objects> objects;
  add_regions(payload, objects);
  add_queues(payload, objects);
  for (const Objects& held : objects) {
    CEEMS_CHECK(held.pid > 0 && !held.device.empty());
  }
  std::vector<QueuePairs> pairs;
  add_pairs(payload, pairs);
  CEEMS_CHECK(pairs.size() <= payload.size());
  std::vector<QpCounters> counters;
  add_counters(payload, counters);
  CEEMS_CHECK(counters.size() <= payload.size());
  static_cast<void>(parse_mode(payload));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  check_payload(bytes);
  static_cast<void>(read_answer(bytes, 1, check_payload));
  return 0;
}
