#include <fmt/format.h>
#include <re2/re2.h>

#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
#include "host/infiniband.h"

namespace ceems::exporter {
namespace {

constexpr std::uint64_t kActive = 4;  // IBTA port state

void examine_netdev(const DoctorContext& context, Report report) {
  const std::string file = context.paths.proc / "net/dev";
  if (!exists(file)) {
    report.absent(fmt::format("{} does not exist", file),
                  "mount /proc of the host's network, or remove --collector.netdev");
  } else if (report.wanted()) {
    report.works("the network devices of this network namespace");
  } else {
    report.off("not requested");
  }
}

void examine_infiniband(const DoctorContext& context, Report report) {
  auto devices = host::read_infiniband(context.paths.sys);
  if (const re2::RE2 exclude(context.infiniband_exclude, re2::RE2::Quiet);
      devices && !context.infiniband_exclude.empty() && exclude.ok()) {
    std::erase_if(*devices, [&exclude](const host::InfinibandDevice& device) {
      return re2::RE2::FullMatch(device.name, exclude);
    });
  }
  if (!devices || devices->empty()) {
    report.absent(devices ? "no InfiniBand device" : devices.error().message,
                  "load the driver of the adapter (mlx5_ib, hfi1, irdma), or remove "
                  "--collector.infiniband");
    return;
  }
  std::size_t ports = 0;
  std::size_t active = 0;
  for (const auto& device : *devices) {
    if (!device.problems.empty()) {
      report.cannot(fmt::format("{}: {}", device.name, device.problems.front().message),
                    "check dmesg for the adapter; its other values are exported. "
                    "--collector.infiniband.device-exclude leaves a device out");
    }
    ports += device.ports.size();
    for (const auto& port : device.ports) {
      active += port.state == kActive ? 1 : 0;
    }
  }
  const std::string found =
      fmt::format("{} devices, {} ports, {} of them active", devices->size(), ports, active);
  if (report.wanted()) {
    report.works(found);
  } else {
    report.off(found + "; --collector.infiniband shows their counters");
  }
}

void examine_rdma(const DoctorContext& context, Report report) {
  if (!context.rdma_wanted) {
    report.off("not requested");
  } else if (!exists(context.paths.sys / "class/infiniband")) {
    report.cannot("no RDMA device",
                  "load the driver of the adapter, or remove "
                  "--collector.rdma.stats");
  } else {
    report.works("RDMA devices found");
  }
}

}  // namespace

void examine_network(const DoctorContext& context, Findings& findings) {
  examine_netdev(context, Report(context, findings, "netdev"));
  examine_infiniband(context, Report(context, findings, "infiniband"));
  examine_rdma(context, Report(context, findings, "rdma"));
}

}  // namespace ceems::exporter
