#pragma once

#include <map>
#include <string>

#include "exporter/rdma/reader.h"
#include "os/command.h"

namespace ceems::exporter::rdma {

/// Reads with the rdma command of iproute2, at most 5 s per call.
class CommandReader final : public Reader {
 public:
  /// `program` is an absolute path. `environment` is the whole environment of the command. The
  /// runner must outlive it.
  CommandReader(std::string program,
                std::map<std::string, std::string> environment,
                os::CommandRunner& runner)
      : program_(std::move(program)), environment_(std::move(environment)), runner_(runner) {}

  Result<std::vector<LinkMode>> modes(std::chrono::milliseconds limit,
                                      std::stop_token stop) override;
  Result<Resources> read(bool counters, std::stop_token stop) override;
  Result<> set_counting(const std::string& link, bool on) override;
  [[nodiscard]] std::vector<os::Capability> capabilities() const override;

 private:
  Result<std::string> run(std::vector<std::string> arguments,
                          const std::stop_token& stop,
                          std::chrono::milliseconds limit);

  std::string program_;
  std::map<std::string, std::string> environment_;
  os::CommandRunner& runner_;
};

}  // namespace ceems::exporter::rdma
