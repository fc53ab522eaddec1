#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "exporter/energy/meter/device_meters.h"
#include "exporter/gpu/device_energy.h"
#include "exporter/gpu/library/gpu_library.h"
#include "exporter/gpu/monitor.h"
#include "exporter/run/job.h"
#include "host/paths.h"

namespace ceems::exporter::run {

/// The libraries of the GPUs of this machine that can be loaded. A machine without a GPU loads
/// none.
std::vector<std::unique_ptr<gpu::GpuLibrary>> load_gpu_libraries(const host::Paths& paths);

/// Whether the resource manager has reserved a whole GPU for the job, by the names in Job::gpus. In
/// a job whose devices are confined, the libraries show its own GPUs only, under other numbers, so
/// all are its own if there are as many as names.
bool is_reserved(const Job& job, const gpu::DeviceState& device, std::size_t visible);

/// The GPUs that the job holds: those on which it has a process and those that were reserved for
/// it, also while it does not use them.
class OwnDevices final : public energy::DeviceMeters {
 public:
  OwnDevices(std::shared_ptr<gpu::Monitor> monitor, Job job)
      : monitor_(monitor), energy_(std::move(monitor), nullptr), job_(std::move(job)) {}

  void read(const energy::MeterContext& context,
            std::span<const energy::ManagerUnits> managers,
            std::vector<energy::DeviceSample>& samples) override;
  bool read_use(std::span<const energy::ManagerUnits> managers,
                std::vector<energy::DeviceUse>& uses) override;
  void set_host(const energy::SocketParts& parts) override { energy_.set_host(parts); }
  [[nodiscard]] std::string models() const override { return energy_.models(); }

 private:
  [[nodiscard]] std::vector<const gpu::DeviceState*> reserved(const gpu::Reading& reading) const;

  const std::shared_ptr<gpu::Monitor> monitor_;
  gpu::DeviceEnergy energy_;
  const Job job_;
  std::optional<Clock::SteadyTime> used_;  // the reading of the last read_use()
};

}  // namespace ceems::exporter::run
