#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "exporter/ebpf/bpf_library.h"
#include "exporter/profile/sampler/sample.h"
#include "exporter/profile/sampler/unwind_memory.h"
#include "host/paths.h"

namespace ceems::exporter::profile {

/// The compiled program bpf/stacks.bpf.c (ELF).
extern const std::string_view kStacksBpfO;

/// Processes whose code the sampling program does not (fully) know. Describing one takes longer the
/// more mappings and binaries a job makes, and a job can change them all the time. Therefore
/// describing takes a tenth of a CPU at most, those that were described the longest ago come first,
/// and each has its turn once a second at most. Not thread-safe.
class DescribeQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::milliseconds kTurn{50};     ///< begins no other one after it
  static constexpr std::chrono::milliseconds kAgain{1000};  ///< between two turns of a process
  static constexpr int kPauses = 9;                         ///< times as long as it took

  explicit DescribeQueue(std::function<Time()> now = std::chrono::steady_clock::now);

  /// The process runs `image` now.
  void add(pid_t pid, const stack_image& image) { waiting_[pid] = image; }
  /// Calls `describe` for those whose turn it is.
  void run(const std::function<void(pid_t, const stack_image&)>& describe);

  [[nodiscard]] std::size_t size() const { return waiting_.size(); }

 private:
  std::function<Time()> now_;
  std::map<pid_t, stack_image> waiting_;
  std::map<pid_t, Time> described_;  ///< less than kAgain ago, and others
  Time resume_{};
};

struct SamplerOptions {
  unsigned rate = 97;   ///< samples per second of CPU time, 1 to 10000
  bool user = true;     ///< user frames
  bool kernel = false;  ///< kernel frames
  bool python = true;   ///< frames of Python programs
  /// Sample the processes below the cgroups of set_units(), besides the processes of
  /// set_processes().
  bool by_unit = false;
  unsigned processes = 2048;  ///< that the kernel's table of them holds
  std::string controller;     ///< v1 controller in whose hierarchy units are; empty with cgroup v2
};

/// Samples what runs on all CPUs, from the time it is created until it is destroyed, by a program
/// in the kernel (bpf/stacks.bpf.c). Raises CAP_BPF while it talks to the kernel. Not thread-safe.
class StackSampler final : private UnwindStore {
 public:
  /// Needs CAP_BPF and CAP_PERFMON, Linux 5.10 and x86-64. Errors: kNotFound (no libbpf or type
  /// information), kPermissionDenied, kInvalidArgument (the machine), kInternal (the kernel rejects
  /// the program).
  static Result<std::unique_ptr<StackSampler>> create(const SamplerOptions& options,
                                                      const host::Paths& paths);
  ~StackSampler() override;
  StackSampler(const StackSampler&) = delete;
  StackSampler& operator=(const StackSampler&) = delete;

  /// Samples these from now on. Samples name their unit even if it is not sampled by unit
  /// (`by_unit`). kUnavailable: too many.
  Result<> set_processes(std::span<const pid_t> pids);
  Result<> set_units(std::span<const std::uint64_t> cgroups);

  /// Describes a process that will be sampled, so that its first samples are complete already.
  void describe(pid_t pid) { static_cast<void>(memory_.describe(pid)); }

  /// Hands over what was sampled since the last call. Processes and code that the program did not
  /// know are described to it, so that their next samples are complete (DescribeQueue bounds what
  /// that takes). Call it several times a second.
  void drain(const std::function<void(const Sample&)>& use);

  /// Forgets processes that have ended. Call it now and then.
  void forget_ended() { memory_.forget_ended(); }

  /// Samples that did not fit into the buffer.
  [[nodiscard]] std::uint64_t lost() const;
  [[nodiscard]] const UnwindMemory& memory() const { return memory_; }

 private:
  StackSampler(ebpf::BpfObject object, const SamplerOptions& options, const host::Paths& paths);

  Result<> attach(const SamplerOptions& options, const host::Paths& paths);
  Result<> put_table(std::uint32_t index, const UnwindCells& table) override;
  void remove_table(std::uint32_t index) override;
  Result<> put_mappings(std::uint32_t first, std::span<const stack_mapping> mappings) override;
  Result<> put_process(pid_t pid, const stack_process& process) override;
  void remove_process(pid_t pid) override;
  static int on_sample(void* self, void* data, std::size_t size);

  ebpf::BpfObject object_;
  std::unique_ptr<::ring_buffer, void (*)(::ring_buffer*)> ring_;
  std::vector<UniqueFd> events_;
  const std::function<void(const Sample&)>* use_ = nullptr;
  DescribeQueue unknown_;
  std::set<std::uint64_t> units_;
  std::set<std::uint32_t> targets_;
  UnwindMemory memory_;
};

}  // namespace ceems::exporter::profile
