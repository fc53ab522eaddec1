#include "exporter/collectors/k8s.h"

#include <linux/capability.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "exporter/collectors/gpu_map.h"
#include "exporter/collectors/unit_collector.h"
#include "exporter/k8s/kubelet_client.h"
#include "exporter/k8s/pod_devices.h"
#include "exporter/unit/cgroup_unit_source.h"

namespace ceems::exporter {
namespace {

constexpr auto kTimeLimit = std::chrono::seconds(1);  // of kubelet and API server together
constexpr UnitMetricOptions kAlwaysShown{.swap = true, .block_io = true};

std::string environment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread is started
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// Access to the API server; nothing if there is none.
Result<std::optional<kube::ApiAccess>> find_access(const K8sOptions& options) {
  if (options.kubeconfig.empty()) {
    return kube::in_cluster_access(options.service_host, options.service_port);
  }
  CEEMS_TRY(access, kube::load_kubeconfig(options.kubeconfig, k8s::read_privileged));
  if (access.exec) {
    return fail(ErrorCode::kInvalidArgument,
                "kubeconfig {}: commands for credentials are not run; give a token, tokenFile "
                "or certificate",
                options.kubeconfig);
  }
  return access;
}

std::unique_ptr<gpu::ClaimSource> make_claims(const K8sOptions& options,
                                              const kube::ApiAccess& access,
                                              const Clock& clock) {
  k8s::PodClaimOptions claims;
  claims.fetch = [access, socket = options.socket, node = options.node_name,
                  warned = std::make_shared<bool>(false)](
                     const std::stop_token& stop) -> Result<std::vector<gpu::Claim>> {
    const auto begin = std::chrono::steady_clock::now();
    const auto left = [begin] {
      return std::chrono::ceil<std::chrono::milliseconds>(begin + kTimeLimit -
                                                          std::chrono::steady_clock::now());
    };
    CEEMS_TRY(pods, k8s::list_pods(access, node, left(), stop));
    CEEMS_TRY(devices, k8s::list_pod_devices(socket, left(), stop));
    if (std::ranges::all_of(devices, [](const auto& pod) { return pod.claimed.empty(); })) {
      return k8s::join_pods(devices, pods);
    }
    const auto slices = k8s::list_slice_devices(access, node, left(), stop);
    if (!slices && !std::exchange(*warned, true)) {
      log::warn(
          "cannot read resource slices; GPUs of resource claims are not shown (the account needs "
          "list on resourceslices.resource.k8s.io)",
          {{"collector", "k8s"}, {"err", slices.error().message}});
    }
    return k8s::join_pods(devices, pods, slices.value_or(k8s::SliceDevices{}));
  };
  if (access.has_files()) {
    claims.capabilities.push_back(CAP_DAC_READ_SEARCH);
  }
  if (!k8s::accessible_to_every_user(options.socket)) {
    claims.capabilities.push_back(CAP_DAC_OVERRIDE);
  }
  return std::make_unique<k8s::PodClaims>(std::move(claims), clock);
}

}  // namespace

Result<std::unique_ptr<Collector>> make_k8s_collector(
    const CollectorContext& context,
    const CgroupFlags& cgroups,
    const SubCollectorSet& subs,
    const K8sOptions& options,
    const std::shared_ptr<gpu::Inventory>& inventory) {
  const host::CgroupMount mount = cgroups.mount(context);
  UnitMetricOptions metrics = kAlwaysShown;
  metrics.pressure = options.pressure;
  CEEMS_TRY(source, CgroupUnitSource::create({.manager = "k8s",
                                              .paths = context.paths,
                                              .mount = mount,
                                              .active_subsystem = cgroups.active_subsystem,
                                              .stats = {.swap = metrics.swap,
                                                        .pressure = metrics.pressure,
                                                        .block_io = metrics.block_io,
                                                        .cpus = CpuSource::kShares},
                                              .list_empty = true,
                                              .keep_ended = context.keep_ended},
                                             k8s_matcher(), *context.clock));
  CEEMS_TRY(sub_collectors, subs.create(context, mount, *source));
  CEEMS_TRY(found, find_access(options));
  const std::optional<kube::ApiAccess>& access = found;
  if (inventory != nullptr && !inventory->has_no_gpus()) {
    if (!access) {
      log::warn("no kubeconfig and not in a cluster; the pods that hold the GPUs are not shown",
                {{"collector", "k8s"}});
    } else {
      CEEMS_TRY(map, gpu::make_map_collector(context, inventory,
                                             "A value > 0 indicates the pod using current GPU",
                                             make_claims(options, *access, *context.clock)));
      sub_collectors.insert(sub_collectors.begin(), std::move(map));
    }
  }
  return make_unit_collector(
      {.name = "k8s",
       .source = std::move(source),
       .metrics = UnitMetrics(context.hostname, for_mount(metrics, mount, context, "k8s")),
       .subs = std::move(sub_collectors)},
      *context.clock);
}

/// --collector.k8s: pods of Kubernetes.
CollectorSpec k8s_collector(const std::shared_ptr<UnitFlags>& shared) {
  auto values = std::make_shared<K8sOptions>();
  return {
      .name = "k8s",
      .help = "Enable the k8s collector (pods of Kubernetes on this node)",
      .stage = Stage::kPods,
      .add_flags =
          [values](config::FlagSet& flags) {
            flags.add("collector.k8s.kubeconfig.file", values->kubeconfig,
                      {.help = "kubeconfig for the API server; empty: in-cluster configuration"});
            flags.add(
                "collector.k8s.kubelet-podresources-socket.file", values->socket,
                {.help =
                     "Socket of the kubelet's pod-resources API, which lists the devices of pods"});
            flags.add("collector.k8s.psi-metrics", values->pressure,
                      {.help = "Pressure stall times of each pod (cgroup v2)"});
          },
      .create =
          [values, shared](const CollectorContext& context, const Sources&) {
            K8sOptions options = *values;
            options.node_name = environment("NODE_NAME");
            options.service_host = environment("KUBERNETES_SERVICE_HOST");
            options.service_port = environment("KUBERNETES_SERVICE_PORT");
            return make_k8s_collector(context, shared->cgroups, shared->subs, options,
                                      shared->gpus.inventory(context));
          }};
}

}  // namespace ceems::exporter
