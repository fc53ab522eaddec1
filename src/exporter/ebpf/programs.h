#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "exporter/ebpf/bpf_library.h"
#include "exporter/ebpf/bpf_object.h"
#include "exporter/ebpf/file_runs.h"
#include "exporter/ebpf/hooks.h"
#include "exporter/ebpf/kernel_types.h"
#include "exporter/ebpf/tables.h"

namespace ceems::exporter::ebpf {

struct ProgramOptions {
  bool files = false;
  bool network = false;
  bool latency = false;  ///< of files
  /// Networks and the number of the class that each belongs to, above 0.
  std::vector<std::pair<ebpf_network, std::uint32_t>> networks = {};
  /// The v1 controller in whose hierarchy units are; empty with cgroup v2.
  std::string controller;
};

/// A hook that the kernel does not have or refuses.
struct MissingHook {
  std::string_view function;
  std::string_view loses;
  std::string reason;
};

/// The programs that count in the kernel (bpf/), from the time they are loaded until this object is
/// destroyed. Raises CAP_BPF while it reads.
class Programs final : public Tables {
 public:
  /// Loads and attaches. Hooks that do not fit are left out: see missing(). Errors: kNotFound (no
  /// libbpf, no type information in the kernel), kPermissionDenied, kInternal (nothing can be
  /// loaded). Needs CAP_BPF and CAP_PERFMON, and with kernels before 5.11 a large limit of locked
  /// memory.
  static Result<std::unique_ptr<Programs>> load(const ProgramOptions& options);

  [[nodiscard]] const std::vector<MissingHook>& missing() const { return missing_; }

  Result<Readings> read() override;
  std::optional<ebpf_cgroup> cgroup(std::uint64_t id) override;
  Rows<std::uint64_t, ebpf_cgroup> cgroups() override;
  std::optional<ebpf_place> place(const ebpf_file_key& key) override;
  bool forget_file(const ebpf_file_key& key) override;
  void forget_names(std::uint64_t cgroup) override;
  void forget_latency(const ebpf_latency_key& key) override;
  void forget_traffic(const ebpf_traffic_key& key) override;
  void forget_cgroup(std::uint64_t id) override;

 private:
  using Link = std::unique_ptr<::bpf_link, int (*)(::bpf_link*)>;

  Programs() = default;
  Result<> load_files(const KernelTypes& types, ebpf_settings settings);
  Result<> load_network(const KernelTypes& types,
                        ebpf_settings settings,
                        const ProgramOptions& options);
  Result<> attach(const BpfObject& object, HookPart part);
  void iterate_connections();
  void add_skipped(Readings& readings);
  void add_runs(Rows<ebpf_file_key, ebpf_file_value>& files);
  Result<> read_open(std::vector<ebpf_open_connection>& open);

  unsigned cpus_ = 1;
  bool latency_ = false;
  FileRuns runs_;
  BpfObject files_;
  BpfObject network_;
  std::vector<int> programs_;  // descriptors of the attached ones
  std::vector<Link> links_;
  Link iterator_{nullptr, nullptr};
  std::vector<MissingHook> missing_;
};

}  // namespace ceems::exporter::ebpf
