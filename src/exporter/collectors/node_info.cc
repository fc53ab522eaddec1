#include "exporter/collectors/node_info.h"

#include <utility>

#include "base/strings.h"
#include "host/cpu_topology.h"
#include "host/proc.h"
#include "host/read_file.h"

namespace ceems::exporter {

NodeInfo::NodeInfo(std::string hostname, const host::Paths& paths)
    : hostname_(std::move(hostname)),
      info_("ceems_node_info",
            "What the node is made of; the value is 1.",
            metrics::Type::kGauge,
            {"hostname", "cpu_model", "sockets", "gpu_model"}) {
  std::size_t sockets = host::read_cpu_topology(paths).packages.size();
  const auto text = host::read_file((paths.proc / "cpuinfo").string());
  if (const auto cpus = text ? host::parse_cpuinfo(*text) : fail(text.error())) {
    cpu_model_ = printable(cpus->model_name, 128);
    sockets = sockets > 0 ? sockets : cpus->sockets;
  }
  sockets_ = sockets > 0 ? std::to_string(sockets) : std::string();
}

void NodeInfo::add(std::string_view gpu_model, metrics::Sink& sink) const {
  sink.add(info_, 1, {hostname_, cpu_model_, sockets_, gpu_model});
}

}  // namespace ceems::exporter
