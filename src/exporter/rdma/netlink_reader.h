#pragma once

#include <functional>
#include <memory>

#include "base/fd.h"
#include "exporter/rdma/netlink.h"
#include "exporter/rdma/reader.h"

namespace ceems::exporter::rdma {

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
