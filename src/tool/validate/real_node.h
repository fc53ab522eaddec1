#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "host/paths.h"
#include "net/client/client.h"
#include "tool/validate/load_process.h"
#include "tool/validate/meter.h"
#include "tool/validate/run.h"

namespace ceems::tool::validate {

/// This machine, with a running exporter. Loads are processes of its own. Not thread-safe.
class RealNode final : public TestedNode {
 public:
  /// Waits for so many seconds, and returns whether the program may go on.
  using Sleep = std::function<bool(double seconds)>;

  /// `url` is that of the exporter's metrics.
  RealNode(std::string url,
           std::unique_ptr<net::Client> client,
           std::unique_ptr<ReferenceMeter> meter,
           std::vector<std::string> cgroup_roots,
           Sleep sleep,
           host::Paths paths);

  double now() override;
  Result<> wait(double seconds) override;
  Result<ExporterPage> page() override;
  Result<CpuUse> cpu_use() override;
  Result<> start(const std::string& uuid, const Assignment& load) override;
  Result<> stop(const std::string& uuid) override;
  Result<std::vector<WattReading>> readings() override;
  std::string busiest() override;

 private:
  Result<> read_meter();

  std::string url_;
  std::unique_ptr<net::Client> client_;
  std::unique_ptr<ReferenceMeter> meter_;
  std::vector<std::string> cgroup_roots_;
  Sleep sleep_;
  host::Paths paths_;
  BusyProcesses processes_;
  double processes_read_ = 0;
  std::vector<WattReading> readings_;
  int failures_ = 0;  ///< of the meter, before its first reading
  std::map<std::string, LoadProcess> loads_;
};

/// The description of this machine, without the GPUs, which the exporter knows.
NodeKind kind_of_node(const host::Paths& paths);

/// The logical CPUs of each core that this process may use.
std::vector<std::vector<int>> usable_cores(const host::Paths& paths);

}  // namespace ceems::tool::validate
