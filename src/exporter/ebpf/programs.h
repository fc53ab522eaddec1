#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "exporter/ebpf/bpf_library.h"
#include "exporter/ebpf/kernel_types.h"
#include "exporter/ebpf/tables.h"

namespace ceems::exporter::ebpf {

/// The compiled programs of bpf/files.bpf.c and bpf/network.bpf.c (ELF).
extern const std::string_view kFilesBpfO;
extern const std::string_view kNetworkBpfO;

/// The runs of calls that the CPUs count (struct ebpf_file_run), and what they add to the rows of
/// `files`. Not thread-safe.
class FileRuns {
 public:
  /// The runs of all CPUs as they were read. A run that was replaced meanwhile is left out; its
  /// counts are in the table at the next reading. `operation`: EBPF_READ or EBPF_WRITE.
  void note(std::uint32_t operation, std::span<const ebpf_file_run> runs);
  /// Adds the runs to the rows, whose keys are unique.
  void add_to(Rows<ebpf_file_key, ebpf_file_value>& files) const;
  /// Whether a CPU is in a run of this key, or may be.
  [[nodiscard]] bool has(const ebpf_file_key& key) const;

 private:
  using Key = std::array<std::uint64_t, 3>;
  struct Runs {
    std::map<Key, ebpf_file_value> sums;
    bool unsure = false;  ///< some could not be read
  };
  static Key key_of(const ebpf_file_key& key) { return {key.cgroup, key.mount, key.root}; }

  std::array<Runs, 2> runs_;
};

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
