#include "exporter/profile/sampler/stack_sampler.h"

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include "exporter/ebpf/kernel_types.h"
#include "host/cpu_topology.h"
#include "host/read_file.h"
#include "os/privileges.h"

namespace ceems::exporter::profile {
namespace {

using ebpf::bpf;

constexpr std::uint32_t kBufferBytes = 8U << 20U;

static_assert(static_cast<int>(PythonEntry::kEvery) == STACK_PYTHON_EVERY &&
              static_cast<int>(PythonEntry::kFlag) == STACK_PYTHON_FLAG &&
              static_cast<int>(PythonEntry::kOwner) == STACK_PYTHON_OWNER);

std::string error_text(int error) {
  return std::generic_category().message(error);
}

std::vector<int> online_cpus(const host::Paths& paths) {
  const auto text = host::read_file((paths.sys / "devices/system/cpu/online").string());
  const auto cpus = text ? host::parse_cpu_list(*text) : std::nullopt;
  return cpus.value_or(std::vector<int>());
}

/// A clock that ticks while something runs on the CPU. -1 and errno on an error.
int open_clock(int cpu, unsigned rate) {
  ::perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.freq = 1;
  attributes.sample_freq = rate;
  attributes.disabled = 1;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg): there is no other interface
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

/// The number of the pid namespace that `paths.proc` shows: the container's, if the exporter runs
/// in one with its own /proc. 0 if it is the node's or unknown.
std::uint32_t pid_namespace_of(const host::Paths& paths) {
  constexpr std::uint64_t kOfTheNode = 0xEFFFFFFC;  // in all kernels
  const os::RaisedCapabilities raised{CAP_SYS_PTRACE};
  struct stat info{};
  const std::string link = (paths.proc / "1/ns/pid").string();
  if (::stat(link.c_str(), &info) != 0 || info.st_ino == kOfTheNode) {
    return 0;
  }
  return static_cast<std::uint32_t>(info.st_ino);
}

const ::bpf_program* find_program(const ::bpf_object* object, std::string_view name) {
  ::bpf_program* program = nullptr;
  while ((program = bpf().object_next_program(object, program)) != nullptr) {
    if (name == bpf().program_name(program)) {
      return program;
    }
  }
  return nullptr;
}

/// Changes the keys of a table in the kernel from `have`, which it holds now, to `wanted`.
template <class Key>
Result<> set_keys(int map, const std::set<Key>& wanted, std::set<Key>& have) {
  const os::RaisedCapabilities raised{CAP_BPF};
  std::erase_if(have, [&](const Key& key) {
    return !wanted.contains(key) && bpf().map_delete(map, &key) == 0;
  });
  const std::uint32_t one = 1;
  for (const Key& key : wanted) {
    if (have.contains(key)) {
      continue;
    }
    if (bpf().map_update(map, &key, &one, BPF_ANY) != 0) {
      return fail(ErrorCode::kUnavailable, "too many to sample: {}", error_text(errno));
    }
    have.insert(key);
  }
  return {};
}

/// From two numbers for each (layout.h).
std::vector<PythonSample> python_frames(std::span<const std::uint64_t> numbers) {
  constexpr std::uint64_t kEntry = 1;
  std::vector<PythonSample> frames;
  for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
    if (numbers[i] != kEntry) {
      frames.push_back({.code = {.address = numbers[i] & ~kEntry, .check = numbers[i + 1]},
                        .entry = (numbers[i] & kEntry) != 0});
    } else if (!frames.empty() && !frames.back().entry) {
      frames.back().entry = true;
      frames.back().stack = numbers[i + 1];
    }
  }
  return frames;
}

}  // namespace

DescribeQueue::DescribeQueue(std::function<Time()> now) : now_(std::move(now)) {}

void DescribeQueue::run(const std::function<void(pid_t, const stack_image&)>& describe) {
  const Time begin = now_();
  if (waiting_.empty() || begin < resume_) {
    return;
  }
  std::vector<std::pair<Time, pid_t>> order;
  for (const auto& [pid, image] : waiting_) {
    const auto before = described_.find(pid);
    if (before == described_.end()) {
      order.emplace_back(Time{}, pid);
    } else if (begin - before->second >= kAgain) {
      order.emplace_back(before->second, pid);
    }
  }
  std::ranges::sort(order);
  Time end = begin;
  for (const auto& [before, pid] : order) {
    describe(pid, waiting_[pid]);
    waiting_.erase(pid);
    end = now_();
    described_[pid] = end;
    if (end - begin >= kTurn) {
      break;
    }
  }
  resume_ = end + kPauses * (end - begin);
  std::erase_if(described_, [&](const auto& known) {
    return end - known.second >= 2 * kAgain && !waiting_.contains(known.first);
  });
}

StackSampler::StackSampler(ebpf::BpfObject object,
                           const SamplerOptions& options,
                           const host::Paths& paths)
    : object_(std::move(object)),
      ring_(nullptr, nullptr),
      memory_(paths,
              *this,
              options.python ? UnwindMemory::Python::kFind : UnwindMemory::Python::kIgnore,
              options.processes) {}

StackSampler::~StackSampler() = default;

Result<std::unique_ptr<StackSampler>> StackSampler::create(const SamplerOptions& options,
                                                           const host::Paths& paths) {
#if !defined(__x86_64__)
  return fail(ErrorCode::kInvalidArgument, "the profiler unwinds stacks of x86-64 only");
#endif
  const os::RaisedCapabilities raised{CAP_BPF, CAP_PERFMON, CAP_SYS_RESOURCE};
  CEEMS_TRY(types, ebpf::KernelTypes::running());
  stack_settings settings{.legacy = 0,
                          .controller = 0,
                          .by_unit = options.by_unit ? 1U : 0U,
                          .kernel = options.kernel ? 1U : 0U,
                          .user = options.user ? 1U : 0U,
                          .pid_namespace = pid_namespace_of(paths)};
  if (!options.controller.empty()) {
    const auto controller = types.controller(options.controller);
    if (!controller) {
      return fail(ErrorCode::kNotFound, "the kernel has no cgroup controller {}",
                  options.controller);
    }
    settings.legacy = 1;
    settings.controller = *controller;
  }
  ebpf::BpfObject object(bpf().object_open(kStacksBpfO.data(), kStacksBpfO.size(), nullptr));
  if (object.get() == nullptr || bpf().get_error(object.get()) != 0) {
    return fail(ErrorCode::kInternal, "cannot read the sampling program");
  }
  ::bpf_map* const constants = bpf().object_map(object.get(), ".rodata.settings");
  ::bpf_map* const samples = bpf().object_map(object.get(), "samples");
  ::bpf_map* const processes = bpf().object_map(object.get(), "processes");
  if (constants == nullptr || samples == nullptr || processes == nullptr ||
      bpf().map_set_max_entries(processes, options.processes) != 0 ||
      bpf().map_set_initial_value(constants, &settings, sizeof(settings)) != 0 ||
      bpf().map_set_max_entries(samples, kBufferBytes) != 0) {
    return fail(ErrorCode::kInternal, "the sampling program is not what it should be");
  }
  if (const int error = bpf().object_load(object.get()); error != 0) {
    return fail(
        error == -EPERM || error == -EACCES ? ErrorCode::kPermissionDenied : ErrorCode::kInternal,
        "the kernel rejects the sampling program: {}", error_text(-error));
  }
  std::unique_ptr<StackSampler> sampler(new StackSampler(std::move(object), options, paths));
  CEEMS_TRY(sampler->attach(options, paths));
  return sampler;
}

Result<> StackSampler::attach(const SamplerOptions& options, const host::Paths& paths) {
  ring_ = {bpf().ring_new(object_.map("samples"), on_sample, this, nullptr), bpf().ring_free};
  if (!ring_) {
    return fail(ErrorCode::kInternal, "cannot map the buffer of samples: {}", error_text(errno));
  }
  const ::bpf_program* const take = find_program(object_.get(), "take_sample");
  if (take == nullptr) {
    return fail(ErrorCode::kInternal, "the sampling program is not what it should be");
  }
  // By their number in the program.
  std::uint32_t index = 0;
  for (const std::string_view name : {"unwind_user", "read_python"}) {
    const ::bpf_program* const next = find_program(object_.get(), name);
    const int fd = next == nullptr ? -1 : bpf().program_fd(next);
    if (bpf().map_update(object_.map("programs"), &index, &fd, BPF_ANY) != 0) {
      return fail(ErrorCode::kInternal, "cannot chain the sampling programs: {}",
                  error_text(errno));
    }
    ++index;
  }
  int last_error = ENODEV;
  for (const int cpu : online_cpus(paths)) {
    UniqueFd event(open_clock(cpu, options.rate));
    // NOLINTBEGIN(cppcoreguidelines-pro-type-vararg): there is no other interface
    if (!event.valid() ||
        ::ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, bpf().program_fd(take)) != 0 ||
        ::ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
      last_error = errno;
      continue;
    }
    // NOLINTEND(cppcoreguidelines-pro-type-vararg)
    events_.push_back(std::move(event));
  }
  if (events_.empty()) {
    return fail(last_error == EACCES || last_error == EPERM ? ErrorCode::kPermissionDenied
                                                            : ErrorCode::kInternal,
                "cannot sample any CPU: {}", error_text(last_error));
  }
  return {};
}

Result<> StackSampler::set_processes(std::span<const pid_t> pids) {
  std::set<std::uint32_t> wanted;
  for (const pid_t pid : pids) {
    wanted.insert(static_cast<std::uint32_t>(pid));
  }
  return set_keys(object_.map("targets"), wanted, targets_);
}

Result<> StackSampler::set_units(std::span<const std::uint64_t> cgroups) {
  return set_keys(object_.map("units"), std::set<std::uint64_t>(cgroups.begin(), cgroups.end()),
                  units_);
}

int StackSampler::on_sample(void* self, void* data, std::size_t size) {
  constexpr std::size_t kHeader = offsetof(stack_sample, addresses);
  auto& sampler = *static_cast<StackSampler*>(self);
  stack_sample sample{};
  if (size < kHeader || size > sizeof(sample)) {
    return 0;
  }
  std::memcpy(&sample, data, size);
  const std::span<const std::uint64_t> addresses(sample.addresses);
  const std::size_t have = (size - kHeader) / sizeof(std::uint64_t);
  const std::size_t kernel = std::min<std::size_t>(sample.kernel_frames, have);
  const std::size_t user = std::min<std::size_t>(sample.user_frames, have - kernel);
  const std::size_t python =
      std::min<std::size_t>(sample.python_frames, (have - kernel - user) / 2);
  const std::size_t left = have - kernel - user - 2 * python;
  const std::size_t stack = python > 0 ? std::min(user, left) : 0;
  const std::string_view comm(std::begin(sample.comm),
                              ::strnlen(std::begin(sample.comm), std::size(sample.comm)));
  const auto pid = static_cast<pid_t>(sample.pid);
  if (sample.unknown != 0) {
    sampler.unknown_.add(pid, sample.image);
  }
  const std::vector<PythonSample> python_samples =
      python_frames(addresses.subspan(kernel + user, 2 * python));
  (*sampler.use_)({.pid = pid,
                   .image = sample.image,
                   .unit = sample.unit,
                   .comm = comm,
                   .end = static_cast<stack_end>(sample.end),
                   .unknown = sample.unknown != 0,
                   .kernel = addresses.subspan(0, kernel),
                   .user = addresses.subspan(kernel, user),
                   .python = python_samples,
                   .stack = addresses.subspan(kernel + user + 2 * python, stack),
                   .python_cut = sample.python_cut != 0,
                   .python_process = sampler.memory_.python(pid)});
  return 0;
}

void StackSampler::drain(const std::function<void(const Sample&)>& use) {
  use_ = &use;
  bpf().ring_consume(ring_.get());
  use_ = nullptr;
  unknown_.run([this](pid_t pid, const stack_image& image) {
    static_cast<void>(memory_.describe(pid, image));  // it may have ended
  });
}

std::uint64_t StackSampler::lost() const {
  const os::RaisedCapabilities raised{CAP_BPF};
  const std::uint32_t first = 0;
  std::uint64_t lost = 0;
  bpf().map_lookup(object_.map("lost_samples"), &first, &lost);
  return lost;
}

Result<> StackSampler::put_table(std::uint32_t index, const UnwindCells& cells) {
  const os::RaisedCapabilities raised{CAP_BPF};
  ::bpf_map_create_opts options{};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_INNER_MAP;
  const UniqueFd table(bpf().map_create(BPF_MAP_TYPE_ARRAY, "ceems_rows", sizeof(std::uint32_t),
                                        sizeof(stack_row),
                                        static_cast<std::uint32_t>(cells.cells.size()), &options));
  if (!table.valid()) {
    return fail(ErrorCode::kInternal, "cannot make an unwind table: {}", error_text(errno));
  }
  std::vector<std::uint32_t> keys(cells.cells.size());
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    keys[i] = i;
  }
  auto count = static_cast<std::uint32_t>(cells.cells.size());
  const int fd = table.get();
  if (bpf().map_update_batch(fd, keys.data(), cells.cells.data(), &count, nullptr) != 0 ||
      bpf().map_update(object_.map("tables"), &index, &fd, BPF_ANY) != 0) {
    return fail(ErrorCode::kInternal, "cannot fill an unwind table: {}", error_text(errno));
  }
  return {};
}

void StackSampler::remove_table(std::uint32_t index) {
  const os::RaisedCapabilities raised{CAP_BPF};
  bpf().map_delete(object_.map("tables"), &index);
}

Result<> StackSampler::put_mappings(std::uint32_t first, std::span<const stack_mapping> mappings) {
  const os::RaisedCapabilities raised{CAP_BPF};
  const int map = object_.map("mappings");
  std::uint32_t index = first;
  for (const stack_mapping& mapping : mappings) {
    if (bpf().map_update(map, &index, &mapping, BPF_ANY) != 0) {
      return fail(ErrorCode::kInternal, "cannot describe a mapping: {}", error_text(errno));
    }
    ++index;
  }
  return {};
}

Result<> StackSampler::put_process(pid_t pid, const stack_process& process) {
  const os::RaisedCapabilities raised{CAP_BPF};
  const auto key = static_cast<std::uint32_t>(pid);
  if (bpf().map_update(object_.map("processes"), &key, &process, BPF_ANY) != 0) {
    return fail(ErrorCode::kInternal, "cannot describe a process: {}", error_text(errno));
  }
  return {};
}

void StackSampler::remove_process(pid_t pid) {
  const os::RaisedCapabilities raised{CAP_BPF};
  const auto key = static_cast<std::uint32_t>(pid);
  bpf().map_delete(object_.map("processes"), &key);
}

}  // namespace ceems::exporter::profile
