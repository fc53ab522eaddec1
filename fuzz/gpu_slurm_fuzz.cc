// All parsers that find the GPUs of SLURM jobs, on the same text: gres.conf, order map,
// environments, files of a prolog, device cgroups.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "exporter/gpu/claim/gres_conf.h"
#include "exporter/gpu/claim/shares.h"
#include "exporter/gpu/claim/slurm_claims.h"

using namespace ceems::exporter::gpu;  // NOLINT(google-build-using-namespace): one short file

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<ceems::exporter::gpu::Device> devices(3);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].position = i;
    devices[i].driver_minor = i;
    devices[i].index = std::to_string(i);
  }
  devices[2].index.clear();
  devices[2].split = true;
  devices[2].instances = {{.index = "2", .gpu_instance = 1}, {.index = "3", .gpu_instance = 2}};
  apply_order_map(parse_order_map(text), devices);

  const auto available =
      available_shares(parse_gres_conf(text), parse_mig_minors(text), {"n1"}, devices);
  std::vector<Claim> claims;
  const auto add = [&](std::vector<std::string> ordinals, std::uint64_t shares, Evidence evidence) {
    claims.push_back({.uuid = std::to_string(claims.size()),
                      .cgrouphostname = {},
                      .evidence = evidence,
                      .ordinals = std::move(ordinals),
                      .shares = shares});
  };
  if (const auto environment = parse_job_environment(text, "1")) {
    CEEMS_CHECK(environment->job_gpus.size() <= 1024);
    add(environment->job_gpus, environment->shares.value_or(0), Evidence::kEnvironment);
    add(environment->step_gpus, 1, Evidence::kEnvironment);
  }
  if (const auto file = parse_gpu_map_file(text)) {
    add(file->ordinals, file->shares, Evidence::kRootFile);
  }
  for (const auto& found : attach(devices, claims, available)) {
    std::vector<Holders> all = found.instances;
    all.push_back(found.device);
    for (const Holders& holders : all) {
      double sum = 0;
      for (const Holder& holder : holders.units) {
        CEEMS_CHECK(holders.flag(holder) > 0 && holders.flag(holder) <= 1);
        sum += holders.part(holder);
      }
      CEEMS_CHECK(holders.units.empty() || (sum > 0.999 && sum < 1.001));
    }
  }
  CEEMS_CHECK(expand_nodes(text).size() <= 65536);
  CEEMS_CHECK(expand_numbers(text).size() <= 4096);
  static_cast<void>(parse_devices_list(text).allows(195, 0));
  static_cast<void>(parse_device_major(text, "nvidia-caps"));
  return 0;
}
