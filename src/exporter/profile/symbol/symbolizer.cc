#include "exporter/profile/symbol/symbolizer.h"

#include <algorithm>
#include <utility>

namespace ceems::exporter::profile {
namespace {

// Memory that debuggers and assemblers fill in, where stacks end.
constexpr std::uint64_t kFillerCc = 0xCCCCCCCCCCCCCCCC;
constexpr std::uint64_t kFiller90 = 0x9090909090909090;

constexpr std::size_t kMaxPythonBytes = std::size_t{4} << 20U;  // of a process

}  // namespace

Symbolizer::Symbolizer(host::Paths paths, const SymbolizerOptions& options)
    : paths_(std::move(paths)),
      options_(options),
      binaries_(paths_, options.binaries, options.debug_files) {}

SymbolName Symbolizer::name(pid_t pid, std::uint64_t address) {
  // As a return address, minus one.
  if (address == kFillerCc || address == kFiller90 || address + 1 == kFillerCc ||
      address + 1 == kFiller90) {
    return {.function = "end_of_stack", .module = {}};
  }
  Process& owner = process(pid);
  const Mapping* mapping = mapping_of(pid, owner, address);
  if (mapping != nullptr) {
    if (const Binary* binary = binary_of(pid, owner, *mapping)) {
      const auto offset = binary->offset_of(*mapping, address);
      if (const auto found = offset ? binary->symbols.find(*offset) : std::nullopt) {
        return {.function = demangled(*found, options_.demangle),
                .module = mapping->path,
                .resolved = true};
      }
      return {.function = mapping->path, .module = mapping->path};
    }
  }
  // Also without a mapping: the process may have ended, and its map may still be known.
  if (auto found = jit_name(pid, owner, address)) {
    return {.function = std::move(*found), .module = {}, .resolved = true, .jit = true};
  }
  if (mapping == nullptr || mapping->path.empty()) {
    return {.function = "[unknown]", .module = {}};
  }
  return {.function = mapping->path, .module = mapping->path};
}

Symbolizer::Process& Symbolizer::process(pid_t pid) {
  Process& found = processes_[pid];
  found.used = round_;
  found.sequence = ++uses_;
  if (bytes_ > options_.process_bytes) {
    evict();
  }
  return found;
}

void Symbolizer::read_process(pid_t pid, Process& process) {
  process.maps_read = round_ + 1;
  auto maps = read_maps(paths_, pid);
  // A process that is ending no longer has mappings; the mappings read before still name its
  // samples.
  if (!maps || maps->mappings.empty() || maps->mappings == process.maps.mappings) {
    return;
  }
  process.maps = std::move(*maps);
  process.binaries.assign(process.maps.mappings.size(), std::nullopt);
  account(process);
}

void Symbolizer::account(Process& process) {
  bytes_ -= process.bytes;
  process.bytes = sizeof(Process) + (process.perf_map ? process.perf_map->memory_bytes() : 0);
  process.bytes += process.python_bytes;
  for (const Mapping& mapping : process.maps.mappings) {
    process.bytes += sizeof(Mapping) + sizeof(process.binaries[0]) + mapping.path.capacity();
  }
  bytes_ += process.bytes;
}

const Mapping* Symbolizer::mapping_of(pid_t pid, Process& process, std::uint64_t address) {
  const Mapping* found = process.maps.find(address);
  if (found == nullptr && process.maps_read != round_ + 1) {
    read_process(pid, process);
    found = process.maps.find(address);
  }
  return found;
}

const Binary* Symbolizer::binary_of(pid_t pid, Process& process, const Mapping& mapping) {
  if (mapping.kind == Mapping::Kind::kVdso) {
    return binaries_.vdso();
  }
  if (mapping.kind != Mapping::Kind::kFile) {
    return nullptr;
  }
  auto& known = process.binaries[static_cast<std::size_t>(&mapping - process.maps.mappings.data())];
  if (!known) {
    auto binary = binaries_.find(pid, mapping);
    if (!binary && binary.error().code == ErrorCode::kUnavailable) {
      return nullptr;  // too many in this round
    }
    known = binary ? std::move(*binary) : nullptr;
  }
  return known->get();
}

std::optional<std::string> Symbolizer::jit_name(pid_t pid,
                                                Process& process,
                                                std::uint64_t address) {
  auto found = process.perf_map ? process.perf_map->find(address) : std::nullopt;
  if (!found && process.perf_map_read != round_ + 1) {
    process.perf_map_read = round_ + 1;
    if (auto map = read_perf_map(paths_, pid)) {
      process.perf_map = std::move(*map);
      account(process);
      found = process.perf_map->find(address);
    }
  }
  return found ? std::optional<std::string>(*found) : std::nullopt;
}

void Symbolizer::enter(pid_t pid, const Program& program) {
  const auto known = processes_.find(pid);
  if (known != processes_.end() && known->second.program != program) {
    forget(pid);
  }
  process(pid).program = program;
}

const PythonFunction* Symbolizer::python_function(pid_t pid,
                                                  const PythonLayout& layout,
                                                  const PythonCode& code) {
  constexpr std::size_t kEntryBytes = sizeof(PythonCode) + sizeof(PythonFunction) + 48;
  Process& owner = process(pid);
  if (const auto known = owner.python.find(code); known != owner.python.end()) {
    return &known->second;
  }
  auto function = read_python_function(layout, code, paths_, pid);
  if (!function) {
    return nullptr;
  }
  if (owner.python.size() >= options_.python_functions || owner.python_bytes >= kMaxPythonBytes) {
    owner.python.clear();
    owner.python_bytes = 0;
    account(owner);
  }
  const std::size_t bytes = kEntryBytes + function->name.capacity() + function->file.capacity();
  owner.python_bytes += bytes;
  owner.bytes += bytes;
  bytes_ += bytes;
  return &owner.python.emplace(code, *std::move(function)).first->second;
}

void Symbolizer::forget(pid_t pid) {
  const auto found = processes_.find(pid);
  if (found != processes_.end()) {
    bytes_ -= found->second.bytes;
    processes_.erase(found);
  }
}

void Symbolizer::next_round() {
  ++round_;
  if (binaries_.next_round()) {
    for (auto& [pid, process] : processes_) {
      process.binaries.assign(process.maps.mappings.size(), std::nullopt);
    }
  }
  evict();
}

void Symbolizer::evict() {
  if (processes_.size() <= options_.processes && bytes_ <= options_.process_bytes) {
    return;
  }
  std::vector<std::pair<std::uint64_t, pid_t>> by_use;
  by_use.reserve(processes_.size());
  for (const auto& [pid, process] : processes_) {
    by_use.emplace_back(process.sequence, pid);
  }
  std::ranges::sort(by_use, std::greater<>{});
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < by_use.size(); ++i) {
    const Process& process = processes_.at(by_use[i].second);
    bytes += process.bytes;
    const bool recent = round_ - process.used < options_.binaries.rounds;
    // The most recently used one stays in any case: it is in use.
    if (i > 0 && ((i >= options_.processes && !recent) || bytes > options_.process_bytes)) {
      bytes -= process.bytes;
      forget(by_use[i].second);
    }
  }
}

}  // namespace ceems::exporter::profile
