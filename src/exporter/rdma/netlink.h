#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "exporter/rdma/reader.h"

// Messages of the RDMA netlink family (<rdma/rdma_netlink.h>, drivers/infiniband/core/nldev.c in
// Linux; attributes as in netlink(7)). These functions only work on bytes; NetlinkReader
// communicates with the kernel.
namespace ceems::exporter::rdma {

using Bytes = std::span<const std::byte>;

/// An RDMA adapter.
struct Device {
  std::uint32_t index = 0;
  std::string name;
  std::uint32_t ports = 0;
};

/// Builds a request of the family RDMA_NL_NLDEV.
std::vector<std::byte> make_request(
    std::uint16_t command,
    bool dump,
    std::uint32_t sequence,
    std::span<const std::pair<std::uint16_t, std::uint32_t>> values);

/// What a read from the socket contained.
enum class Answer {
  kMore,  ///< other messages will follow
  kEnd,   ///< the answer is complete
};

/// Passes the payload of each message of an answer to `use`. Messages with another sequence number
/// are ignored. Errors: the kernel's, and kParse for malformed messages.
Result<Answer> read_answer(Bytes data,
                           std::uint32_t sequence,
                           const std::function<void(Bytes payload)>& use);

/// Parsers of the payloads of answers to RDMA_NLDEV_CMD_GET, _RES_MR_GET, _RES_CQ_GET, _RES_QP_GET
/// and _STAT_GET. Malformed objects and the kernel's own are left out.
std::optional<Device> parse_device(Bytes payload);
void add_regions(Bytes payload, std::vector<Objects>& regions);
void add_queues(Bytes payload, std::vector<Objects>& queues);
void add_pairs(Bytes payload, std::vector<QueuePairs>& pairs);
void add_counters(Bytes payload, std::vector<QpCounters>& counters);
/// Whether queue pairs are counted automatically. Nothing if they were bound by hand, which must
/// not be changed.
std::optional<bool> parse_mode(Bytes payload);

/// Reads through netlink in this process: the adapters of the exporter's network namespace, or all
/// if the kernel shares them (`rdma system`).
class NetlinkReader final : public Reader {
 public:
  /// Errors: this kernel has no RDMA, or access is denied.
  static Result<std::unique_ptr<NetlinkReader>> create();

  Result<std::vector<LinkMode>> modes(std::chrono::milliseconds limit,
                                      std::stop_token stop) override;
  Result<Resources> read(bool counters, std::stop_token stop) override;
  Result<> set_counting(const std::string& link, bool on) override;
  [[nodiscard]] std::vector<os::Capability> capabilities() const override;

 private:
  using Values = std::vector<std::pair<std::uint16_t, std::uint32_t>>;

  explicit NetlinkReader(UniqueFd socket) : socket_(std::move(socket)) {}
  Result<> ask(const UniqueFd& socket,
               std::uint16_t command,
               bool dump,
               const Values& values,
               const std::function<void(Bytes)>& use);
  Result<std::vector<Device>> devices();

  UniqueFd socket_;
  std::uint32_t sequence_ = 0;
};

}  // namespace ceems::exporter::rdma
